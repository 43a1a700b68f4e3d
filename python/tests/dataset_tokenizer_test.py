"""Where a data set's tokenizer comes from: a directory, a file, HuggingFace's hub; and who runs it. Builds are recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import hub_imitation
import lmemo
from dataset_fixtures import arrow_bytes, chats, make_model, sentences, settle, write_lines
from lmemo import dataset


def make_foreign_model(directory: Path) -> Path:
    """One that lmemo's engine refuses: a regex in its decoder, which changes no id."""
    make_model(directory)
    content = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    content["decoder"] = {"type": "Replace", "pattern": {"Regex": "x+"}, "content": "x"}
    (directory / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(lmemo.Incompatible, match="decoder"):
        lmemo._core.NativeTokenizer.load(directory)
    return directory


def lmemo_command(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"HF_HUB_OFFLINE": "1"} | variables
    return subprocess.run([sys.executable, "-m", "lmemo", *map(str, words)], capture_output=True, text=True, env=environment, timeout=120)


def test_a_tokenizer_that_only_huggingface_runs_has_its_ids_and_an_identity_of_its_own(tmp_path: Path) -> None:
    foreign, plain = make_foreign_model(tmp_path / "foreign"), make_model(tmp_path / "plain")
    texts = sentences(300)
    request = {"train_file": str(write_lines(tmp_path / "train.jsonl", [{"text": text} for text in texts])), "eval_split": 0.1}
    with lmemo.Store(tmp_path / "store") as store:
        first = dataset.build(request, model_name=str(foreign), cached_tokens_dir=str(tmp_path / "set"), store=store, workers=3)
        assert first.counts["rows_tokenised"] == 300
        again = dataset.build(request, model_name=str(foreign), cached_tokens_dir=str(tmp_path / "again"), store=store)
        assert again.counts["rows_from_store"] == 300
        ours = dataset.build(request, model_name=str(plain), cached_tokens_dir=str(tmp_path / "ours"), store=store)
        assert ours.counts["rows_from_store"] == 0
    metadata = json.loads((tmp_path / "set" / "metadata.json").read_text())
    assert metadata["tokenizer_identity"] == lmemo.Tokenizer.from_pretrained_dir(foreign).fingerprint
    rows = dataset.ensure(request, model_name=str(foreign), cached_tokens_dir=str(tmp_path / "set"))
    engine = tokenizers.Tokenizer.from_file(str(foreign / "tokenizer.json"))
    eos = engine.token_to_id("<|endoftext|>")
    expected = {tuple(engine.encode(text).ids + [eos]) for text in texts}
    assert {tuple(row["input_ids"]) for split in rows.values() for row in split} == expected
    assert arrow_bytes(tmp_path / "set") == arrow_bytes(tmp_path / "again")


def test_masks_and_chats_work_with_huggingfaces_engine(tmp_path: Path) -> None:
    foreign, plain = make_foreign_model(tmp_path / "foreign"), make_model(tmp_path / "plain")
    request = {"train_file": str(write_lines(tmp_path / "chats.jsonl", chats(40))), "messages_field": "messages", "template": "chatml",
               "loss": "assistant"}  # fmt: skip
    sets = [dataset.ensure(request, model_name=str(model), cached_tokens_dir=str(tmp_path / model.name / "set"), store=lmemo.MemoryStore())
            for model in (foreign, plain)]  # fmt: skip
    assert sets[0]["train"][:] == sets[1]["train"][:]


def test_another_version_of_huggingfaces_engine_is_another_tokenizer(tmp_path: Path) -> None:
    foreign = make_foreign_model(tmp_path / "foreign")
    request = {"model_name": str(foreign), "train_file": str(write_lines(tmp_path / "train.jsonl", [{"text": "a b"}])),
               "cached_tokens_dir": str(tmp_path / "set")}  # fmt: skip
    settle(foreign / "tokenizer.json", foreign / "tokenizer_config.json", tmp_path / "train.jsonl")
    dataset.build(request, store=lmemo.MemoryStore())
    assert dataset.check(request).is_valid and dataset.check(request).is_valid
    seen = next((tmp_path / "set").rglob("seen.json"))
    text = seen.read_text()
    assert f"huggingface tokenizers {tokenizers.__version__}" in text
    # As if an older one had built it: what is remembered does not count, and the tokenizer is asked again.
    seen.write_text(text.replace(f"tokenizers {tokenizers.__version__}", "tokenizers 0.1.0"))
    assert dataset.check(request).is_valid
    assert "0.1.0" not in seen.read_text()


def test_the_command_line_falls_back_too(tmp_path: Path) -> None:
    foreign = make_foreign_model(tmp_path / "foreign")
    lines = write_lines(tmp_path / "train.jsonl", [{"text": text} for text in sentences(20)])
    done = lmemo_command("dataset", "build", "-t", foreign, "--train-file", lines, "-o", tmp_path / "set", "--store", tmp_path / "store", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows_tokenised"] == 20
    assert lmemo_command("dataset", "check", tmp_path / "set", "-t", foreign, "--train-file", lines).stdout == "valid\n"
    (foreign / "tokenizer.json").write_text('{"model": 5}')
    broken = lmemo_command("dataset", "build", "-t", foreign, "--train-file", lines, "-o", tmp_path / "set", "--store", tmp_path / "store")
    assert broken.returncode == 1 and "tokenizer.json" in broken.stderr and "Traceback" not in broken.stderr


# ------------------------------------------------------------------------------------------------------------ the hub


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_lines(tmp_path / "train.jsonl", [{"text": text} for text in sentences(20)])
    content = {"model_name": "OWNER/NAME", "train_file": "train.jsonl", "cached_tokens_dir": str(tmp_path / "set")}
    (tmp_path / "train.json").write_text(json.dumps(content))
    return tmp_path / "train.json"


def hub_files(tmp_path: Path) -> hub_imitation.Files:
    model = make_model(tmp_path / "origin")
    names = {path.name: path.read_bytes() for path in model.iterdir()}
    return hub_imitation.Files(names | {"model.safetensors": b"x" * 1000, "config.json": b"{}"})


def test_a_model_of_the_hub_is_fetched_once_and_only_its_tokenizer(config: Path, tmp_path: Path) -> None:
    cache = {"HF_HOME": str(tmp_path / "home"), "LMEMO_STORE": str(tmp_path / "store")}
    with hub_imitation.serving(hub_files(tmp_path)) as hub:
        built = lmemo_command("dataset", "ensure", config, **cache, HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0")
    assert built.returncode == 0, built.stderr
    assert hub.ranges_of("tokenizer.json") and not hub.ranges_of("model.safetensors")
    metadata: dict[str, Any] = json.loads((tmp_path / "set" / "metadata.json").read_text())
    assert metadata["model_name"] == "OWNER/NAME"
    assert metadata["tokenizer_identity"] == lmemo.Tokenizer.from_pretrained_dir(tmp_path / "origin").fingerprint
    # Now it is in the cache: no server is needed, and the set is valid under the model's path as well.
    again = lmemo_command("dataset", "ensure", config, "--json", **cache)
    assert json.loads(again.stdout)["built"] is False
    assert lmemo_command("dataset", "check", tmp_path / "set", "-t", tmp_path / "origin", "--train-file", tmp_path / "train.jsonl").returncode == 0
    asked = lmemo_command("dataset", "check", tmp_path / "set", "--model-name", "OWNER/NAME", "--train-file", tmp_path / "train.jsonl", **cache)
    assert asked.stdout == "valid\n"


def test_a_name_that_nobody_knows_is_an_error_with_every_place_that_was_tried(config: Path, tmp_path: Path) -> None:
    cache = {"HF_HOME": str(tmp_path / "home"), "LMEMO_STORE": str(tmp_path / "store")}
    offline = lmemo_command("dataset", "ensure", config, **cache)
    assert offline.returncode == 1
    assert "no tokenizer OWNER/NAME: neither a path" in offline.stderr and "from the hub" in offline.stderr and str(tmp_path / "home") in offline.stderr
    with hub_imitation.serving(hub_imitation.Files({"config.json": b"{}"})) as hub:
        without = lmemo_command("dataset", "ensure", config, **cache, HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0")
        assert without.returncode == 2 and "has no tokenizer.json" in without.stderr
        hub.requests.clear()
        lines = tmp_path / "train.jsonl"
        for name in ("models/deep/down", "./model", "../model", "tokenizer.json", "a b"):
            refused = lmemo_command("dataset", "build", "-t", name, "--train-file", lines, "-o", tmp_path / "no", **cache, HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0")
            assert refused.returncode == 2 and "hub:" not in refused.stderr, refused.stderr
        assert hub.requests == []


# ------------------------------------------------------------------------------------------------------------ metrics


def test_a_build_is_a_row_of_the_metrics_and_a_look_is_none(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    rows = [{"text": text} for text in sentences(200)]
    lines = write_lines(tmp_path / "train.jsonl", rows[:150])
    request = {"model_name": str(model), "train_file": str(lines), "cached_tokens_dir": str(tmp_path / "set")}
    with lmemo.Store(tmp_path / "store") as store:
        dataset.build(request, store=store)
        dataset.build(request, store=store)
        write_lines(lines, rows)
        dataset.build(request, store=store)
    runs = json.loads(lmemo_command("metrics", "--store", tmp_path / "store", "--json").stdout)["runs"]
    assert [run["face"] for run in runs] == ["dataset", "dataset"]  # Newest first.
    assert [(run["tokenization"]["cache_hits"], run["tokenization"]["cache_misses"]) for run in runs] == [(150, 50), (0, 150)]
    assert runs[0]["miss_reasons"] == {"new": 50} and runs[0]["source"] == str(tmp_path / "set")
    assert runs[0]["tokenizer"] == lmemo.Tokenizer.from_pretrained_dir(model).fingerprint
    assert runs[0]["total_tokens"] > runs[1]["total_tokens"] > 0 and runs[1]["tokenization"]["total_tokenize_seconds"] > 0
    assert runs[0]["tokenization"]["cache_bytes_after"] > 0
    table = lmemo_command("metrics", "--store", tmp_path / "store").stdout
    assert "dataset" in table and str(tmp_path / "set") in table
