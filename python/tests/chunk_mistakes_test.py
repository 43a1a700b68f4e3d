"""What people ask of `lmemo chunks` by mistake, or on a bad day: said in words, before anything is written, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from chunk_commands import LMEMO, build, built, chunk, copy_of, corpus, digests, flip, in_words, run, tokenizer, write_lines  # noqa: F401


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


def test_a_source_with_another_name_is_not_taken_twice(tokenizer: Path, tmp_path: Path) -> None:
    directory = tmp_path / "set"
    write_lines(tmp_path / "first.jsonl", [f"Document {number}." for number in range(500)])
    (tmp_path / "text.txt").write_text("One more.")
    build([tmp_path / "first.jsonl", tmp_path / "text.txt"], tokenizer, directory, "--sequence-length", 8)
    before = digests(directory)
    for name, now in (("first.jsonl", "other.jsonl"), ("text.txt", "other.txt")):
        (tmp_path / name).rename(tmp_path / now)
    with (tmp_path / "other.jsonl").open("a") as lines:
        lines.write('{"text": "new"}\n')
    assert len(run("show", directory)["gone_sources"]) == 2
    assert run("grow", directory, tmp_path / "other.jsonl", tmp_path / "other.txt", "--dry-run")["new_documents"] == 1
    said, noted = in_words("grow", directory, tmp_path / "other.jsonl", tmp_path / "other.txt")
    assert "first.jsonl is now " in noted and "1 documents" in said
    # Its chunks can be built again from where it is now.
    assert {name: digests(directory)[name] for name in before} == before and run("show", directory)["gone_sources"] == []
    chunk(directory, 0).write_bytes(b"")
    assert run("repair", directory)["complete"] and {name: digests(directory)[name] for name in before} == before
    assert in_words("grow", directory)[1] == ""


def test_growth_goes_on_without_an_input_that_is_gone(tokenizer: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "first.jsonl", ["first"])
    write_lines(tmp_path / "second.jsonl", ["second"])
    build([tmp_path / "first.jsonl", tmp_path / "second.jsonl"], tokenizer, tmp_path / "set")
    (tmp_path / "first.jsonl").unlink()
    write_lines(tmp_path / "second.jsonl", ["second", "third"])
    said, warned = in_words("grow", tmp_path / "set")
    assert "first.jsonl is gone" in warned and "1 documents" in said


def test_a_lost_part_of_the_plan_is_damage(built: Path, tokenizer: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    write_lines(tmp_path / "more.jsonl", ["more"])
    run("grow", directory, tmp_path / "more.jsonl")
    before = digests(directory)
    (directory / "plan" / "000001.plan").unlink()
    found = run("verify", directory, code=4)
    assert not found["complete"] and "not in the plan" in found["problems"][0]
    said, noted = in_words("show", directory)
    assert "not complete" in said and "fill" not in noted
    assert run("grow", directory, tmp_path / "more.jsonl")["built"] == 0
    assert run("verify", directory)["complete"] and digests(directory) == before


def test_a_damaged_plan_is_an_error_of_every_command(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    (directory / "plan" / "000000.plan").write_bytes(b"")
    for command in ("show", "verify", "fill", "repair", "grow"):
        _, said = in_words(command, directory, code=4)
        assert "000000.plan" in said and "finished chunks are kept" in said


def test_lines_that_no_chunk_has_are_told(tokenizer: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "lines.jsonl", ["first"])
    build(tmp_path / "lines.jsonl", tokenizer, tmp_path / "set")
    write_lines(tmp_path / "lines.jsonl", ["first", "second"])
    for command in ("show", "verify"):
        assert run(command, tmp_path / "set")["grown_sources"] == [str(tmp_path / "lines.jsonl")]
        assert "lmemo chunks grow" in in_words(command, tmp_path / "set")[1]
    run("grow", tmp_path / "set")
    assert run("show", tmp_path / "set")["grown_sources"] == []


def test_a_repair_that_was_killed_is_finished_by_the_next(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    (directory / "aside").mkdir()
    chunk(directory, 1).rename(directory / "aside" / "000001.chunk")
    flip(chunk(directory, 2))
    assert run("repair", directory, "--dry-run")["to_rebuild"] == [1, 2]
    assert run("repair", directory)["complete"] and digests(directory) == digests(built)
