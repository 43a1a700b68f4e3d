"""lmemo dataset as people meet it: flags, configs, exit codes, a command that runs on the result."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))
from dataset_fixtures import CHATML, chats, make_model, sentences, write_lines  # noqa: E402
from lmemo_process import Lmemo, name_of, programs  # noqa: E402


@pytest.fixture(params=programs(), ids=name_of)
def lmemo(request: pytest.FixtureRequest, tmp_path: Path) -> Lmemo:
    make_model(tmp_path / "model", CHATML)
    write_lines(tmp_path / "a.jsonl", [{"text": text} for text in sentences(40)])
    write_lines(tmp_path / "b.jsonl", [{"text": text} for text in sentences(40, seed=1)])
    write_lines(tmp_path / "chats.jsonl", chats(10))
    return Lmemo(request.param, tmp_path)


def told(lmemo: Lmemo, *words: str) -> tuple[int, dict[str, Any]]:
    done = lmemo.run("dataset", *words, "--json")
    return done.returncode, json.loads(done.stdout)


FLAGS = ["-t", "model", "--train-file", "a.jsonl", "b.jsonl", "--eval-split", "0.25", "--max-length", "64"]


def test_build_check_show_and_clear(lmemo: Lmemo) -> None:
    assert lmemo.run("dataset", "check", "set", *FLAGS).returncode == 3
    code, built = told(lmemo, "build", *FLAGS, "-o", "set")
    assert code == 0 and built["built"] and built["train_size"] + built["eval_size"] == 80
    assert lmemo.run("dataset", "build", *FLAGS, "-o", "set").stdout == f"{lmemo.directory / 'set'}\n"
    assert lmemo.run("dataset", "check", "set", *FLAGS).stdout == "valid\n"
    code, checked = told(lmemo, "check", "set", *FLAGS, "--max-length", "65", "--seed", "-7")
    assert code == 3 and not checked["valid"]
    assert checked["differences"] == [
        {"field": "max_length", "built": "64", "asked": "65"},
        {"field": "seed", "built": "42", "asked": "-7"},
    ]
    shown = json.loads(lmemo.run("dataset", "show", "set").stdout)
    assert shown["train_size"] == built["train_size"] and shown["max_length"] == 64 and len(shown["train_files"]) == 2
    for name in ("created", "model_name", "tokenizer_identity", "vocab_size", "pad_token_id", "padding_share", "seed", "split"):
        assert name in shown

    assert told(lmemo, "show", "set") == (0, {"lmemo": 1, "command": "dataset show"} | shown)
    assert lmemo.run("dataset", "show", "set", "-q").stdout == f"{lmemo.directory / 'set'}\n"

    (lmemo.directory / "set" / "notes.txt").write_text("mine")
    looked = lmemo.run("dataset", "clear", "set", "--dry-run")
    assert looked.returncode == 0
    hint = looked.stderr[looked.stderr.index("`lmemo ") + len("`lmemo ") :].partition("`")[0]
    assert lmemo.run(*hint.split(), "--yes").returncode == 0  # What a note names can be run.
    assert lmemo.run("dataset", "clear", "set").returncode == 2  # Nobody there to ask.
    assert lmemo.run("dataset", "clear", "set", "--yes").returncode == 0
    assert [path.name for path in (lmemo.directory / "set").iterdir()] == ["notes.txt"]
    assert lmemo.run("dataset", "show", "set").returncode == 1


def test_a_pipe_that_nobody_writes_to_does_not_hang(lmemo: Lmemo) -> None:
    os.mkfifo(lmemo.directory / "pipe.jsonl")
    refused = lmemo.run("dataset", "build", "-t", "model", "--train-file", "pipe.jsonl", "-o", "set")
    assert refused.returncode == 2 and "pipe.jsonl: it is a pipe or a device, expected a regular file" in refused.stderr
    assert lmemo.run("dataset", "build", *FLAGS, "-o", "set").returncode == 0
    seen = lmemo.directory / "set" / ".lmemo" / "seen.json"
    seen.unlink(missing_ok=True)
    os.mkfifo(seen)
    assert lmemo.run("dataset", "check", "set", *FLAGS).stdout == "valid\n"


def test_a_config_is_ensured_and_a_command_runs_on_it(lmemo: Lmemo) -> None:
    config = {
        "model_name": "model",
        "train_file": "a.jsonl",
        "eval_file": "b.jsonl",
        "max_length": 64,
        "use_cached_tokens": True,
        "cached_tokens_dir": "cache/tokens",
        "learning_rate": 1e-4,
    }
    (lmemo.directory / "train.json").write_text(json.dumps(config))
    first = lmemo.run("dataset", "ensure", "train.json")
    assert first.returncode == 0 and first.stdout == f"{lmemo.directory / 'cache/tokens'}\n" and "built in" in first.stderr
    second = lmemo.run("dataset", "ensure", "train.json")
    assert second.stdout == first.stdout and "valid" in second.stderr
    ran = lmemo.run("dataset", "run", "train.json", "--", "sh", "-c", 'echo "$LMEMO_DATASET_DIR" "$@"; exit 7', "sh", "--flag")
    assert ran.returncode == 7 and ran.stdout == f"{lmemo.directory / 'cache/tokens'} --flag\n"
    assert lmemo.run("dataset", "run", "train.json", "--", "no-such-program").returncode == 1
    (lmemo.directory / "train.json").write_text(json.dumps(config | {"use_cached_tokens": False}))
    off = lmemo.run("dataset", "ensure", "train.json")
    assert off.returncode == 0 and off.stdout == "" and "use_cached_tokens is false" in off.stderr
    assert lmemo.run("dataset", "run", "train.json", "--", "printenv", "LMEMO_DATASET_DIR").returncode == 1


def test_a_mistyped_name_of_a_config_is_told(lmemo: Lmemo) -> None:
    values = {"model_name": "model", "train_file": "a.jsonl", "cached_tokens_dir": "set", "max_lenght": 5, "max_steps": 7}
    (lmemo.directory / "train.json").write_text(json.dumps(values))
    done = lmemo.run("dataset", "ensure", "train.json")
    assert done.returncode == 0
    assert done.stderr.count("did you mean") == 1
    assert f"{lmemo.directory}/train.json: max_lenght is left to the training; did you mean max_length?" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--train-file", "a.jsonl", "-o", "set"], "missing --tokenizer"),
        (["-t", "model", "-o", "set"], "missing --train-file"),
        (["-t", "nowhere", "--train-file", "a.jsonl", "-o", "set"], "no tokenizer nowhere"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--eval-split", "1.5"], "eval_split is 1.50"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--eval-split", "x"], "a share such as 0.1"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--eval-split", "0.1", "--eval-file", "b.jsonl"], "exclude each other"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--loss", "assistant"], "loss assistant"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--prompt-field", "q"], "go together"),
        (["-t", "model/tokenizer.json", "--train-file", "a.jsonl", "-o", "set"], "names no eos_token"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--eos-token", "<eos>"], "no token of this tokenizer"),
        (["-t", "model", "--train-file", "a.jsonl", "-o", "set", "--max-length", "0"], "max_length is 0, expected"),
    ],
)
def test_what_makes_no_sense_is_said(lmemo: Lmemo, words: list[str], reason: str) -> None:
    done = lmemo.run("dataset", "build", *words)
    assert done.returncode == 2 and reason in done.stderr
    assert not (lmemo.directory / "set").exists()


def test_a_directory_of_others_is_left_alone(lmemo: Lmemo) -> None:
    (lmemo.directory / "set").mkdir()
    (lmemo.directory / "set" / "metadata.json").write_text("{}")
    done = lmemo.run("dataset", "build", *FLAGS, "-o", "set")
    assert done.returncode == 2 and "was not written by lmemo" in done.stderr
    assert (lmemo.directory / "set" / "metadata.json").read_text() == "{}"


def test_templates_need_python_and_say_so(lmemo: Lmemo) -> None:
    lmemo.environment["HF_HUB_OFFLINE"] = "1"
    done = lmemo.run("dataset", "build", "-t", "model", "--train-file", "chats.jsonl", "--messages-field", "messages", "-o", "set")
    if name_of(lmemo.program) == "stand-alone":
        assert done.returncode == 1 and "pip install" in done.stderr and "chatml" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
    native = lmemo.run(
        "dataset", "build", "-t", "model", "--train-file", "chats.jsonl", "--messages-field", "messages", "--template", "chatml",
        "--loss", "assistant", "-o", "native",
    )  # fmt: skip
    assert native.returncode == 0


def test_what_is_wrong_with_the_lines_is_told_line_by_line(lmemo: Lmemo) -> None:
    write_lines(lmemo.directory / "c.jsonl", [{"instruction": "Add", "output": "3"}])
    failed = lmemo.run("dataset", "build", "-t", "model", "--train-file", "c.jsonl", "-o", "set", "-q")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[:3] == [
        f"error: incompatible: no line became a row (1 line in {lmemo.directory / 'c.jsonl'})",
        f"  {lmemo.directory / 'c.jsonl'}:1: missing field: no field \"text\"",
        "the lines have: instruction, output; --text-field, --messages-field or --prompt-field and --completion-field name them",
    ]
