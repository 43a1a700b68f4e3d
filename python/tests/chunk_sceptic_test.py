"""What the words of `lmemo chunks` promise, asked by somebody who doubts them: options that must not be ignored, numbers that must be likely, one JSON object."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import tokenizer_vocabularies
from chunk_commands import LMEMO, build, built, chunk, copy_of, corpus, digests, flip, in_words, run, tokenizer  # noqa: F401

import lmemo


def test_repair_leaves_alone_what_was_not_asked_for(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    for number in (1, 4):
        flip(chunk(directory, number))
    _, said = in_words("repair", directory, "--start-chunk", 0, "--end-chunk", 3)
    assert "not asked for, and left as they are: 4" in said
    assert run("verify", directory, code=4)["damaged"] == [4]
    assert run("repair", directory, "--shard", "1/2", "--dry-run")["to_rebuild"] == []
    run("repair", directory, "--shard", "0/2")
    assert digests(directory) == digests(built)


def test_the_time_that_filling_takes_has_no_night_in_it(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    directory = tmp_path / "set"
    build(corpus, tokenizer, directory, "--end-chunk", 4)
    yesterday = time.time_ns() - 86_400_000_000_000
    for number in range(4):
        os.utime(chunk(directory, number), ns=(yesterday + number * 1_000_000, yesterday + number * 1_000_000))
    run("verify", directory, code=3)  # Takes note of them.
    run("fill", directory, "--start-chunk", 4, "--end-chunk", 6)
    _, said = in_words("fill", directory, "--dry-run")
    left = said.split("and ")[-1].split(" at the rate")[0]
    assert left.split()[-1] in ("ns", "µs", "ms", "s"), said


@pytest.mark.parametrize("sample", ["5", "2", "0", "-1%", "half"])
def test_a_sample_that_is_no_part_is_refused(built: Path, sample: str) -> None:
    _, said = in_words("verify", built, f"--sample={sample}", code=2)
    assert "--sample" in said and "5%" in said
    assert run("verify", built, "--sample", "0.2")["checked"] < run("verify", built, "--sample", "100%")["checked"]


def test_clean_tells_one_thing_at_a_time(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    flip(chunk(directory, 1))
    run("repair", directory)
    refused = subprocess.run([*LMEMO, "chunks", "clean", str(directory), "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode == 2 and "nothing was removed" in json.loads(refused.stdout)["error"]["message"]
    listed = run("clean", directory, "--dry-run")["leftovers"]
    assert len(listed) == 1 and Path(listed[0]).exists()
    assert run("clean", directory, "--yes")["leftovers"] == listed and not Path(listed[0]).exists()
    assert run("clean", directory)["leftovers"] == []


def test_a_table_taken_as_a_text_is_said_to_be(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text('text,label\n"one",1\n"two",2\n')
    _, said = in_words("build", tmp_path / "table.csv", "-t", tokenizer, "-o", tmp_path / "set")
    assert "table.csv is taken as one text" in said and run("show", tmp_path / "set")["documents"] == 1


def test_nothing_to_fill_where_nobody_may_write_is_no_warning(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    (directory / "metadata.json").unlink()
    (directory / "metadata.json").mkdir()  # Cannot be replaced by a file, whoever asks.
    (directory / "metadata.json" / "in the way").touch()
    said, warned = in_words("fill", directory)
    assert "nothing to build: the set is complete" in said and "warning" not in warned


@pytest.mark.parametrize("command", ["fill", "verify", "build"])
def test_metadata_that_was_lost_or_edited_is_made_anew(corpus: Path, tokenizer: Path, built: Path, tmp_path: Path, command: str) -> None:
    directory = copy_of(built, tmp_path / "set")
    meant = json.loads((directory / "metadata.json").read_text())
    words = ["build", corpus, "-t", tokenizer, "-o", directory, "--chunk-sequences", 100] if command == "build" else [command, directory]
    for spoil in (lambda file: file.unlink(), lambda file: file.write_text(file.read_text().replace('"total_chunks": ', '"total_chunks": 9'))):
        spoil(directory / "metadata.json")
        run(*words)
        again = json.loads((directory / "metadata.json").read_text())
        assert {**again, "updated": None} == {**meant, "updated": None}


def test_a_tokenizer_is_named_by_where_it_lies(built: Path, tokenizer: Path, tmp_path: Path) -> None:
    rows = len(lmemo.ChunkSet(built))
    for same in (tokenizer, str(tokenizer), lmemo.Tokenizer.from_file(tokenizer)):
        assert len(lmemo.ChunkSet(built, tokenizer=same)) == rows
    other = tmp_path / "tokenizer.json"
    other.write_text(tokenizer_vocabularies.json_of("llama3"))
    for not_it in (other, tokenizer.parent):  # A directory has settings, which belong to its tokenizer.
        with pytest.raises(lmemo.Incompatible, match="made with tokenizer"):
            lmemo.ChunkSet(built, tokenizer=not_it)
    with pytest.raises(lmemo.InvalidArgument, match="no file or directory here"):
        lmemo.ChunkSet(built, tokenizer="gpt2")


def test_a_quiet_export_says_where_and_nothing_else(built: Path, tmp_path: Path) -> None:
    said, noted = in_words("export", built, "--to", "npy", "--output", tmp_path / "out", "--quiet")
    assert said == f"{tmp_path / 'out'}\n" and noted == ""
