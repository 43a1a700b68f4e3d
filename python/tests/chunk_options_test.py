"""Every option of `lmemo chunks` does what its help says."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tokenizer_vocabularies
from chunk_commands import LMEMO, build, built, chunk, copy_of, corpus, digests, in_words, run, tokenizer, write_lines  # noqa: F401

import lmemo


def rows_of(directory: Path) -> list[list[int]]:
    return [tokens.tolist() for tokens, _ in lmemo.ChunkSet(directory)]


# What goes into rows.


def test_bos_and_eos_stand_around_each_document(tokenizer: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ["one text", "and another"])
    build(tmp_path / "a.jsonl", tokenizer, tmp_path / "set", "--add-bos", "--add-eos", "--strategy", "greedy")
    encoded = [one.ids for one in tokenizer_vocabularies.huggingface("gpt2").encode_batch(["one text", "and another"])]
    assert rows_of(tmp_path / "set") == [[50256, *encoded[0], 50256, 50256, *encoded[1], 50256]]


def test_short_documents_are_left_out_and_counted(tokenizer: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ["a b c d e f", "a", "a b", "a b c"])
    report = build(tmp_path / "a.jsonl", tokenizer, tmp_path / "set", "--min-tokens", 3)
    assert (report["documents"], report["left_out"]["too_short"]) == (2, 2)
    assert run("verify", tmp_path / "set")["complete"]


def test_a_limit_of_documents_plans_the_first_ones(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    assert build(corpus, tokenizer, tmp_path / "set", "--limit-documents", 7)["documents"] == 7
    assert run("verify", tmp_path / "set")["complete"]


def test_another_field_is_read(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"meta": {"body": "deep"}, "text": 1}\n')
    assert build(tmp_path / "a.jsonl", tokenizer, tmp_path / "set", "--text-field", "meta.body")["documents"] == 1


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
def test_every_strategy_compression_and_level_keeps_every_token(
    built: Path, corpus: Path, tokenizer: Path, tmp_path: Path, compression: str
) -> None:
    tokens = run("show", built)["total_tokens"]
    small = tmp_path / "small.jsonl"
    small.write_text("".join(corpus.read_text().splitlines(keepends=True)[:200]))
    small_tokens = build(small, tokenizer, tmp_path / "small")["tokens"]
    assert small_tokens < tokens
    rows = {}
    for strategy, level in (("best_fit", "fast"), ("greedy", "default"), ("concat", "max")):
        directory = tmp_path / strategy
        report = build(small, tokenizer, directory, "--compression", compression, "--level", level, "--strategy", strategy)
        assert report["tokens"] == report["tokens_in"] == small_tokens
        rows[strategy] = sum(map(len, rows_of(directory)))
    assert set(rows.values()) == {small_tokens}


def test_ids_may_have_gaps(tmp_path: Path) -> None:
    vocabulary = {"[UNK]": 0, "a": 7, "b": 70_000}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    added = [{"id": 70_001, "content": "<eos>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}]
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": model}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    write_lines(tmp_path / "a.jsonl", ["a b b", "b c"])
    for compression in ("zstd", "lz4", "none"):
        directory = tmp_path / compression
        report = build(tmp_path / "a.jsonl", tmp_path / "tokenizer.json", directory, "--compression", compression)
        assert report["tokens"] == 5
        assert rows_of(directory) == [[7, 70_000, 70_000, 70_000, 0]]
        assert run("verify", directory)["complete"]


# What is built.


def test_a_dry_run_writes_nothing(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    report = build(corpus, tokenizer, tmp_path / "set", "--dry-run")
    assert report["dry_run"] and report["new_chunks"] > 5
    assert not (tmp_path / "set").exists()
    assert run("plan", corpus, "-t", tokenizer, "-o", tmp_path / "set", "--chunk-sequences", 100)["new_chunks"] == report["new_chunks"]
    missing = run("fill", tmp_path / "set", "--dry-run")["missing"]
    assert len(missing) == report["new_chunks"] and digests(tmp_path / "set") == {}


@pytest.mark.parametrize("words", [["--resume"], ["--mode", "inverse"]])
def test_a_build_goes_on_without_being_told_all_again(built: Path, tmp_path: Path, words: list[str]) -> None:
    directory = copy_of(built, tmp_path / "set")
    chunk(directory, 1).unlink()
    chunk(directory, 4).unlink()
    report = run("build", "--output", directory, *words)
    assert report["built"] == 2 and report["complete"]
    assert digests(directory) == digests(built)
    _, said = in_words("build", "--output", tmp_path / "none", code=2)
    assert "INPUT is missing" in said


def test_a_sample_reads_a_part_and_still_sees_gaps(built: Path, tmp_path: Path) -> None:
    whole = run("verify", built)
    part = run("verify", built, "--sample", "20%")
    assert whole["checked"] == whole["total_chunks"] and 1 <= part["checked"] <= math.ceil(0.2 * whole["total_chunks"]) + 1
    directory = copy_of(built, tmp_path / "set")
    chunk(directory, 3).unlink()
    assert run("verify", directory, "--sample", "20%", code=3)["missing"] == [3]
    in_words("verify", built, "--sample", "a lot", code=2)


def test_every_option_may_stand_in_a_file(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    settings = {"tokenizer": str(tokenizer), "output": str(tmp_path / "set"), "sequence_length": 256, "chunk_sequences": 100,
                "strategy": "greedy", "compression": "lz4", "level": "fast", "text_field": "text", "add_bos": True, "add_eos": True,
                "min_tokens": 2, "dedup": True, "limit_documents": 300, "workers": 1, "memory_limit": "1GB", "strict": False,
                "start_chunk": 0, "end_chunk": 2, "shard": "0/2", "progress": "auto", "mode": "normal"}  # fmt: skip
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (tmp_path / "lmemo.toml").write_text("\n".join(["[chunks]", *lines, ""]))
    ran = subprocess.run([*LMEMO, "chunks", "build", str(corpus), "--json"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["built"], report["workers"]) == (1, 1) and report["missing"]
    shown = run("show", tmp_path / "set")
    assert (shown["sequence_length"], shown["strategy"], shown["compression"]) == (256, "greedy", "lz4")
    (tmp_path / "lmemo.toml").write_text("[chunks]\nsequence_lenght = 5\n")
    _, said = in_words("build", corpus, cwd=tmp_path, code=2)
    assert "sequence_length" in said


def test_an_estimate_is_as_good_as_its_error_bars(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    told = run("show", built)
    whole = run("estimate", corpus, "-t", tokenizer, "--chunk-sequences", 100)  # Less than a sample: all of it is read.
    assert (whole["tokens"], whole["relative_error"]) == (told["total_tokens"], 0)
    assert abs(whole["rows"] - told["total_sequences"]) <= 0.02 * told["total_sequences"]
    assert abs(whole["disk_bytes"] - told["bytes"]) <= 0.15 * told["bytes"]
    assert whole["memory_bytes_per_worker"] > 0 and whole["seconds"] > 0
    large = tmp_path / "large.jsonl"
    copies = 9 * (1 << 20) // corpus.stat().st_size + 1
    large.write_bytes(corpus.read_bytes() * copies)
    sampled = run("estimate", large, "-t", tokenizer)
    assert sampled["sampled_bytes"] < large.stat().st_size / 2
    assert 0 < sampled["relative_error"] < 0.2
    assert abs(sampled["tokens"] - copies * whole["tokens"]) <= 1.5 * sampled["relative_error"] * copies * whole["tokens"]
    packed = tmp_path / "large.jsonl.gz"
    packed.write_bytes(gzip.compress(large.read_bytes(), 0))
    from_start = run("estimate", packed, "-t", tokenizer)
    assert from_start["from_starts"]
    assert abs(from_start["tokens"] - copies * whole["tokens"]) <= 0.5 * copies * whole["tokens"]
    assert "±" in in_words("estimate", large, "-t", tokenizer)[0]


# Progress.


def progress_of(*words: object) -> list[dict[str, Any]]:
    _, said = in_words(*words, "--progress", "json")
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def test_progress_for_machines_has_every_phase_to_its_end(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    lines = progress_of("build", corpus, "-t", tokenizer, "-o", tmp_path / "set", "--chunk-sequences", 100)
    for phase in ("scan", "tokenise", "pack", "compress", "publish"):
        of_phase = [line for line in lines if line["phase"] == phase]
        assert of_phase and of_phase[-1]["done"] == of_phase[-1]["total"] > 0, phase
        assert [line["done"] for line in of_phase] == sorted(line["done"] for line in of_phase)
    last = [line for line in lines if line["phase"] == "publish"][-1]
    assert last["chunks"] == last["total_chunks"] and last["documents"] == last["total_documents"]
    assert last["compression_ratio"] > 1 and 0.9 < last["utilization"] <= 1
    assert 0 < last["memory_bytes"] < last["memory_limit_bytes"]
    assert "seconds_left" in last and last["bytes_per_second"] > 0
    verified = progress_of("verify", tmp_path / "set")
    assert [line for line in verified if line["phase"] == "verify"][-1]["seconds_left"] == 0


@pytest.mark.parametrize("line", ['add_eos = "yes"', "strict = 1", 'progress = "xml"', 'mode = "reverse"', 'strategy = "first_fit"'])
@pytest.mark.parametrize("command", ["build", "fill", "grow", "repair"])
def test_a_setting_that_means_nothing_is_refused(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path, line: str, command: str) -> None:
    (tmp_path / "lmemo.toml").write_text(f"[chunks]\n{line}\n")
    words = [command, corpus, "-t", tokenizer, "-o", tmp_path / "set"] if command == "build" else [command, built]
    _, said = in_words(*words, code=2, cwd=tmp_path)
    assert f"lmemo.toml:2: chunks.{line.split()[0]}: found" in said and "expected one of" in said
    assert not (tmp_path / "set").exists()


def test_paths_of_a_settings_file_begin_where_it_lies(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "tokenizer.json").symlink_to(tokenizer)
    (tmp_path / "lmemo.toml").write_text('[chunks]\ntokenizer = "tokenizer.json"\noutput = "set"\n')
    in_words("build", corpus, cwd=tmp_path / "below")
    assert (tmp_path / "set" / "metadata.json").exists() and list((tmp_path / "below").iterdir()) == []
