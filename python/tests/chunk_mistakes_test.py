"""What people ask of `lmemo chunks` by mistake, or on a bad day: said in words, before anything is written, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from chunk_commands import LMEMO, build, built, copy_of, corpus, digests, in_words, run, tokenizer, write_lines  # noqa: F401


def test_a_directory_with_something_else_in_it_is_refused(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    words = ["build", corpus, "-t", tokenizer, "--chunk-sequences", 100, "-o"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    _, said = in_words(*words, tmp_path / "mine", code=2)
    assert "has no chunks but notes.txt in it" in said and [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    _, said = in_words(*words, tmp_path / "mine" / "notes.txt", code=2)
    assert "is no directory" in said
    (tmp_path / "mine" / "notes.txt").rename(tmp_path / "mine" / ".hidden")
    in_words(*words, tmp_path / "mine")
    (tmp_path / "mine" / "beside.txt").write_text("")  # In a set that is there, nobody minds.
    in_words(*words, tmp_path / "mine")


@pytest.mark.parametrize("words", [["--start-chunk", "5", "--end-chunk", "2"], ["--shard", "5/4"], ["--shard", "x"], ["--memory-limit", "much"]])
def test_nothing_is_planned_before_all_words_are_understood(corpus: Path, tokenizer: Path, tmp_path: Path, words: list[str]) -> None:
    _, said = in_words("build", corpus, "-t", tokenizer, "-o", tmp_path / "set", *words, code=2)
    assert words[-2] in said and not (tmp_path / "set").exists()


def test_a_plan_is_not_asked_for_otherwise_in_silence(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    build(corpus, tokenizer, tmp_path / "set", "--limit-documents", 7)
    words = ["build", corpus, "-t", tokenizer, "-o", tmp_path / "set", "--chunk-sequences"]
    _, said = in_words(*words, 50, "--limit-documents", 7, code=1)
    assert "chunk_sequences: the set has 100, asked for 50" in said
    _, said = in_words(*words, 100, code=1)
    assert "limit_documents: the set has 7, asked for none" in said
    said, _ = in_words(*words, 100, "--limit-documents", 7)
    assert "nothing to build: the set is complete" in said


def test_what_was_appended_to_an_input_of_a_growth_is_found(tokenizer: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_lines(tmp_path / f"{name}.jsonl", [name])
    directory = tmp_path / "set"
    build(tmp_path / "first.jsonl", tokenizer, directory)
    assert run("grow", directory, tmp_path / "second.jsonl")["built"] == 1
    with (tmp_path / "second.jsonl").open("a") as lines:
        lines.write('{"text": "third"}\n')
    assert run("grow", directory, "--dry-run")["to_build"] == [2]
    assert run("grow", directory)["documents"] == 1 and run("show", directory)["documents"] == 3


def test_inputs_without_documents_are_told(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    _, said = in_words("build", tmp_path / "empty.jsonl", "-t", tokenizer, "-o", tmp_path / "set")
    assert "no documents were found" in said


def test_a_set_that_nobody_may_write_to_is_still_complete(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    (directory / "claims").unlink()
    (directory / "claims").mkdir()  # Cannot be opened, whoever asks.
    assert run("fill", directory)["complete"]
    said, _ = in_words("verify", directory)
    assert "every byte" in said


def test_a_full_disk_keeps_what_is_done_and_says_how_to_go_on(corpus: Path, tokenizer: Path, built: Path, tmp_path: Path) -> None:
    largest = max(file.stat().st_size for file in (built / "chunks").iterdir())
    small = (resource.RLIMIT_FSIZE, (largest - 1, largest - 1))
    words = [*LMEMO, "chunks", "build", str(corpus), "-t", str(tokenizer), "-o", str(tmp_path / "set"), "--chunk-sequences", "100", "--workers", "1"]
    ran = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(*small))
    assert ran.returncode == 1 and "no_space" in ran.stderr and "lmemo chunks fill" in ran.stderr
    assert list((tmp_path / "set" / "writing").iterdir()) == []
    assert run("verify", tmp_path / "set", code=3)["damaged"] == []
    assert run("fill", tmp_path / "set")["complete"] and digests(tmp_path / "set") == digests(built)
