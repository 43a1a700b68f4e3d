"""Every field of a set's identity is detected and named; nothing else builds it again."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lmemo
from dataset_fixtures import arrow_bytes, chats, make_model, sentences, settle, write_lines
from lmemo import dataset


@pytest.fixture
def request_of(tmp_path: Path) -> dict[str, Any]:
    make_model(tmp_path / "model")
    write_lines(tmp_path / "train.jsonl", [{"text": text, "body": text.upper()} for text in sentences(60)])
    return {
        "model_name": str(tmp_path / "model"),
        "train_file": str(tmp_path / "train.jsonl"),
        "cached_tokens_dir": str(tmp_path / "set"),
        "eval_split": 0.2,
        "max_length": 64,
    }


def test_every_field_that_differs_is_named(request_of: dict[str, Any], tmp_path: Path) -> None:
    with lmemo.Store(tmp_path / "store") as store:
        assert dataset.build(request_of, store=store).was_built
    assert dataset.check(request_of).is_valid
    other = make_model(tmp_path / "other", eos_token="<|im_end|>")
    write_lines(tmp_path / "changed.jsonl", [{"text": text, "body": ""} for text in sentences(61)])
    expected: list[tuple[dict[str, Any], set[str]]] = [
        ({"max_length": 65}, {"max_length"}),
        ({"padding": "max_length"}, {"padding", "pad_token_id"}),
        ({"padding": "longest"}, {"padding", "pad_token_id"}),
        ({"overflow": "drop"}, {"overflow"}),
        ({"eval_split": 0.3}, {"eval_split"}),
        ({"eval_split": 0}, {"eval_split", "seed"}),
        ({"seed": 43}, {"seed"}),
        ({"text_field": "body"}, {"fields"}),
        ({"append_eos": False}, {"eos_token_id"}),
        ({"eos_token": "<|im_end|>"}, {"eos_token_id"}),
        ({"model_name": str(other)}, {"tokenizer", "eos_token_id"}),
        ({"train_file": str(tmp_path / "changed.jsonl")}, {"train file 1"}),
        ({"train_file": [request_of["train_file"]] * 2}, {"train file 2"}),
        ({"eval_split": 0, "eval_file": request_of["train_file"]}, {"eval_split", "seed", "eval file 1"}),
        ({"prompt_field": "text", "completion_field": "body"}, {"fields"}),
        ({"prompt_field": "text", "completion_field": "body", "loss": "completion"}, {"fields", "loss"}),
        ({"prompt_field": "text", "completion_field": "body", "template": "chatml"}, {"fields", "template", "eos_token_id"}),
    ]
    for change, names in expected:
        report = dataset.check(request_of | change)
        assert {difference.field for difference in report.differences} == names, change
        assert not report


def test_the_text_of_a_template_counts(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", chats(10))
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    request = {
        "model_name": str(make_model(tmp_path / "model")),
        "train_file": str(tmp_path / "train.jsonl"),
        "cached_tokens_dir": str(tmp_path / "set"),
        "messages_field": "messages",
        "template": str(template),
    }
    dataset.build(request, store=lmemo.MemoryStore())
    assert dataset.check(request).is_valid
    template.write_text("{% for m in messages %}{{ m['content'] }} {% endfor %}")
    assert [difference.field for difference in dataset.check(request).differences] == ["template"]
    template.write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    assert dataset.check(request).is_valid


def test_one_changed_byte_is_seen_whatever_the_times_say(request_of: dict[str, Any], tmp_path: Path) -> None:
    file = Path(request_of["train_file"])
    settle(file, *Path(request_of["model_name"]).iterdir())
    dataset.build(request_of, store=lmemo.MemoryStore())
    seen = json.loads((tmp_path / "set" / ".lmemo" / "seen.json").read_text())
    assert len(seen["files"]) == 1 and len(seen["tokenizers"]) == 1  # What follows goes through the memory.
    assert dataset.check(request_of).is_valid

    before = file.stat()
    raw = bytearray(file.read_bytes())
    raw[raw.index(b'"text": "') + 9] ^= 1
    file.write_bytes(raw)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # Same size, same mtime, same inode.
    assert [difference.field for difference in dataset.check(request_of).differences] == ["train file 1"]

    raw[raw.index(b'"text": "') + 9] ^= 1
    file.write_bytes(raw)
    assert dataset.check(request_of).is_valid  # The content is back, and content is what counts.
    config = Path(request_of["model_name"]) / "tokenizer_config.json"
    config.write_text(config.read_text().replace("<|pad|>", "<|im_end|>"))
    assert [difference.field for difference in dataset.check(request_of).differences] == ["tokenizer"]


def test_paths_times_workers_and_seeds_of_hashes_build_nothing_again(request_of: dict[str, Any], tmp_path: Path) -> None:
    dataset.build(request_of | {"workers": 1}, store=lmemo.MemoryStore())
    first = arrow_bytes(tmp_path / "set")
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere" / "model")
    shutil.copy(request_of["train_file"], tmp_path / "elsewhere" / "renamed.jsonl")
    os.utime(request_of["train_file"])
    moved = request_of | {
        "model_name": str(tmp_path / "elsewhere" / "model"),
        "train_file": str(tmp_path / "elsewhere" / "renamed.jsonl"),
        "workers": 3,
    }
    assert dataset.check(request_of).is_valid and dataset.check(moved).is_valid
    (tmp_path / "config.json").write_text(json.dumps(moved))
    code = "import sys, lmemo.dataset as d; o = d.build(sys.argv[1], rehash=True); assert not o.was_built, o.differences"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "config.json")],
            check=True,
            cwd="/",
            env=os.environ | {"PYTHONHASHSEED": seed, "LMEMO_STORE": str(tmp_path / "store")},
        )
    assert arrow_bytes(tmp_path / "set") == first
    # A copy of the set without links is the same set, and can be replaced.
    shutil.copytree(tmp_path / "set", tmp_path / "copy")
    assert dataset.check(moved | {"cached_tokens_dir": str(tmp_path / "copy")}).is_valid
    outcome = dataset.build(moved | {"cached_tokens_dir": str(tmp_path / "copy"), "max_length": 32}, store=lmemo.MemoryStore())
    assert outcome.was_built and dataset.check(moved | {"cached_tokens_dir": str(tmp_path / "copy"), "max_length": 32}).is_valid


def test_the_same_bytes_for_any_number_of_workers_and_from_the_store(request_of: dict[str, Any], tmp_path: Path) -> None:
    lines = [{"text": text} for text in sentences(9000, seed=3)]  # Several blocks.
    write_lines(tmp_path / "train.jsonl", lines)
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress((tmp_path / "train.jsonl").read_bytes()))
    store = lmemo.MemoryStore()
    results = []
    for number, change in enumerate(
        [{"workers": 1}, {"workers": 4}, {"workers": 2, "train_file": str(tmp_path / "train.jsonl.gz")}]
    ):
        directory = tmp_path / f"set{number}"
        outcome = dataset.build(request_of | change | {"cached_tokens_dir": str(directory)}, store=None if number == 1 else store)
        found = arrow_bytes(directory)
        results.append({name: data for name, data in found.items() if name.endswith(".arrow")})
    assert results[0] == results[1] == results[2]
    assert outcome.counts["rows_from_store"] == 9000  # The third came from what the first had left.


def test_damage_to_the_set_is_a_difference(request_of: dict[str, Any], tmp_path: Path) -> None:
    def broken() -> set[str]:
        return {difference.field for difference in dataset.check(request_of).differences}

    for name in ("train/data-00000-of-00001.arrow", "eval/state.json", "dataset_dict.json"):
        dataset.build(request_of, store=lmemo.MemoryStore())
        file = tmp_path / "set" / "tokenized_dataset" / name
        file.unlink()
        assert len(broken()) == 1
    dataset.build(request_of, store=lmemo.MemoryStore())
    data = tmp_path / "set" / "tokenized_dataset" / "train" / "data-00000-of-00001.arrow"
    os.truncate(data, data.stat().st_size - 8)
    assert broken() == {"data file tokenized_dataset/train/data-00000-of-00001.arrow"}
    metadata = tmp_path / "set" / "metadata.json"
    text = metadata.read_text()
    for cut in range(0, len(text), max(1, len(text) // 40)):
        metadata.write_text(text[:cut])
        assert broken(), cut
    metadata.write_text(text.replace('"lmemo_dataset_format": 1', '"lmemo_dataset_format": 2'))
    assert broken() == {"lmemo format"}
    assert dataset.build(request_of, store=lmemo.MemoryStore()).was_built
    assert not broken()


def flip(file: Path, at: int) -> None:
    """One bit changed in place, and the mtime set back: of what a stat shows, only ctime tells."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def data_files(directory: Path) -> list[Path]:
    return sorted((directory / "tokenized_dataset").rglob("*.arrow"))


def remembered(directory: Path) -> dict[str, Any]:
    file = directory / ".lmemo" / "seen.json"
    return json.loads(file.read_text())["data_files"] if file.exists() else {}


def test_a_flipped_bit_in_a_data_file_is_never_served(request_of: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "set"
    dataset.build(request_of, store=lmemo.MemoryStore())
    whole = arrow_bytes(directory)
    for number, name in enumerate(("train", "eval")):
        file = directory / "tokenized_dataset" / name / "data-00000-of-00001.arrow"
        settle(file.resolve())
        assert dataset.check(request_of).is_valid
        assert f"tokenized_dataset/{name}/{file.name}" in remembered(directory)  # What follows goes through the memory.
        flip(file, file.stat().st_size * (number + 1) // 3)
        (difference,) = dataset.check(request_of).differences
        assert difference.field == f"data file tokenized_dataset/{name}/{file.name}"
        expected = next(f for f in json.loads((directory / "metadata.json").read_text())["data_files"] if name in f["file"])
        assert difference.asked == f"checksum {expected['checksum']}" != difference.built
        assert "is damaged: found checksum" in str(difference)
        assert not dataset.check(request_of, rehash=True)
        with_rows = dataset.ensure(request_of, store=lmemo.MemoryStore())
        assert sum(map(len, with_rows.values())) == 60
        assert arrow_bytes(directory) == whole
        assert dataset.check(request_of, rehash=True).is_valid


def test_rehash_reads_data_files_that_look_as_they_did(request_of: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "set"
    dataset.build(request_of, store=lmemo.MemoryStore())
    files = data_files(directory)
    settle(*(file.resolve() for file in files))
    assert dataset.check(request_of).is_valid
    flip(files[0], 5000)
    # Rot that no time tells of: the memory is made to say that the file has looked like this when it was whole.
    seen = directory / ".lmemo" / "seen.json"
    values = json.loads(seen.read_text())
    values["data_files"][str(files[0].relative_to(directory))]["changed_ns"] = files[0].stat().st_ctime_ns
    seen.write_text(json.dumps(values))
    assert dataset.check(request_of).is_valid  # No file is read if it looks as it did …
    assert not dataset.check(request_of, rehash=True)  # … but for this.
    flags = ["--train-file", request_of["train_file"], "--eval-split", "0.2", "--max-length", "64"]
    command = [sys.executable, "-m", "lmemo", "dataset", "check", str(directory), "-t", request_of["model_name"], *flags]
    assert subprocess.run(command, capture_output=True).returncode == 0
    found = subprocess.run([*command, "--rehash"], capture_output=True, text=True)
    assert found.returncode == 3 and "is damaged: found checksum" in found.stdout + found.stderr
    assert dataset.build(request_of, store=lmemo.MemoryStore(), rehash=True).was_built
    assert dataset.check(request_of, rehash=True).is_valid


def test_touched_and_copied_data_files_stay_valid_and_are_remembered(request_of: dict[str, Any], tmp_path: Path) -> None:
    dataset.build(request_of, store=lmemo.MemoryStore())
    assert dataset.check(request_of).is_valid
    shutil.copytree(tmp_path / "set", tmp_path / "linked", symlinks=True)
    shutil.copytree(tmp_path / "set", tmp_path / "plain")
    for name in ("set", "linked", "plain"):
        directory = tmp_path / name
        asked = request_of | {"cached_tokens_dir": str(directory)}
        for file in data_files(directory):
            os.utime(file, (1_700_000_000, 1_700_000_000))
        assert dataset.check(asked).is_valid
    settle(*(file.resolve() for name in ("set", "linked", "plain") for file in data_files(tmp_path / name)))
    for name in ("set", "linked", "plain"):
        directory = tmp_path / name
        asked = request_of | {"cached_tokens_dir": str(directory)}
        assert not dataset.build(asked, store=lmemo.MemoryStore()).was_built
        stamps = {str(file.relative_to(directory)): file.stat() for file in data_files(directory)}
        noted = remembered(directory)
        assert {n: (s.st_ino, s.st_ctime_ns) for n, s in stamps.items()} == {n: (v["inode"], v["changed_ns"]) for n, v in noted.items()}
        flip(data_files(directory)[0], 4000)
        assert len(dataset.check(asked).differences) == 1


def test_the_small_files_beside_the_data_count(request_of: dict[str, Any], tmp_path: Path) -> None:
    dataset.build(request_of, store=lmemo.MemoryStore())
    for name in ("dataset_dict.json", "train/state.json", "eval/state.json", "train/dataset_info.json"):
        file = tmp_path / "set" / "tokenized_dataset" / name
        for at in range(0, file.stat().st_size, 7):
            flip(file, at)
            assert [d.field for d in dataset.check(request_of).differences] == [f"data file tokenized_dataset/{name}"]
            flip(file, at)
    assert dataset.check(request_of).is_valid


def test_a_mistyped_name_is_told_and_broken_json_is_named(
    request_of: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "train.json"
    file.write_text(json.dumps(request_of | {"max_lenght": 5, "max_steps": 7}))
    with lmemo.Store(tmp_path / "store") as store:
        dataset.build(file, store=store)
        dataset.build(request_of | {"callback": print}, store=store)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{file}: max_lenght is left to the training; did you mean max_length?"
    ]
    file.write_text("{")
    with pytest.raises(lmemo.InvalidArgument, match="train.json: not JSON"):
        dataset.check(file)
