"""lmemo chunks as people use it: real processes, a real tokenizer, kills, flipped bytes, edited sources.

What was built is read back by an independent reader of the rows (lmemo.ChunkSet is tested elsewhere): here counts, bytes and
exit codes are compared.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import tokenizer_vocabularies
from chunk_commands import CORPUS, LMEMO, build, built, chunk, copy_of, corpus, digests, flip, run, tokenizer, write_lines  # noqa: F401

import lmemo


# Byte identity, whatever the path.


@pytest.mark.parametrize("workers", [2, 4])
def test_the_bytes_do_not_depend_on_workers(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path, workers: int) -> None:
    build(corpus, tokenizer, tmp_path / "set", "--workers", workers)
    assert digests(tmp_path / "set") == digests(built)


def test_the_bytes_do_not_depend_on_shards_and_ranges(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    for shard in ("2/3", "0/3", "1/3"):
        build(corpus, tokenizer, tmp_path / "shards", "--shard", shard)
    assert digests(tmp_path / "shards") == digests(built)
    for start, end in ((6, 100), (0, 2), (2, 6)):
        build(corpus, tokenizer, tmp_path / "ranges", "--start-chunk", start, "--end-chunk", end)
    assert digests(tmp_path / "ranges") == digests(built)
    assert run("verify", tmp_path / "ranges")["complete"]


def test_ten_kills_at_any_moment_cost_nothing_but_time(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    directory = tmp_path / "set"
    run("plan", corpus, "--tokenizer", tokenizer, "--output", directory, "--chunk-sequences", 100)
    rng = random.Random(6)
    kills = 0
    for _ in range(200):  # On a fast machine a build may be through before it is killed; then once more.
        process = subprocess.Popen([*LMEMO, "chunks", "fill", str(directory), "--workers", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(list((directory / "chunks").iterdir()))
        while process.poll() is None and len(list((directory / "chunks").iterdir())) == before:
            time.sleep(0.0005)  # Until it has begun to publish.
        time.sleep(rng.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        status = run("show", directory)
        assert status["damaged"] == [] and status["stale"] == []
        if kills == 10:
            break
        for path in (directory / "chunks").iterdir():  # There is always enough left to do.
            if rng.random() < 0.7:
                path.unlink()
    run("fill", directory)
    assert kills == 10
    assert digests(directory) == digests(built)
    assert run("verify", directory)["complete"]
    run("clean", directory, "--yes")
    assert list((directory / "writing").iterdir()) == []


def test_two_builders_at_once_share_the_work(built: Path, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    directory = tmp_path / "set"
    command = [*LMEMO, "chunks", "build", str(corpus), "--tokenizer", str(tokenizer), "--output", str(directory), "--chunk-sequences", "100", "--workers", "1", "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    reports = [json.loads(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(report["built"] for report in reports) == reports[0]["total_chunks"]
    assert digests(directory) == digests(built)


# Damage and change.


def test_a_flipped_byte_is_found_and_repaired(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    flip(chunk(directory, 2))
    assert run("show", directory)["damaged"] == [2]
    assert run("verify", directory, code=4)["damaged"] == [2]
    assert run("repair", directory)["built"] == 1
    assert run("verify", directory)["complete"]
    assert digests(directory) == digests(built)


def test_a_flip_that_leaves_no_trace_in_the_file_system_is_found_by_verify(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    before = chunk(directory, 1).stat()
    flip(chunk(directory, 1))
    os.utime(chunk(directory, 1), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run("verify", directory, code=4)["damaged"] == [1]


def test_a_truncated_chunk_is_damage_and_a_deleted_one_a_gap(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    os.truncate(chunk(directory, 0), 1000)
    chunk(directory, 3).unlink()
    shown = run("show", directory)
    assert (shown["damaged"], shown["missing"], shown["complete"]) == ([0], [3], False)
    run("verify", directory, code=4)
    run("repair", directory, code=3)  # A gap is no damage: it is left to fill.
    run("verify", directory, code=3)
    assert run("fill", directory)["built"] == 1
    assert digests(directory) == digests(built)


def test_an_edited_line_makes_just_its_chunk_stale(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    lines = corpus.read_text().splitlines(keepends=True)
    source.write_text("".join(lines))
    directory = tmp_path / "set"
    build(source, tokenizer, directory)
    before = digests(directory)
    middle = len(lines) // 2
    lines[middle] = json.dumps({"text": "A longer line than it was, in any case. " * 50}) + "\n"
    source.write_text("".join(lines))
    stale = run("show", directory)["stale"]
    assert len(stale) == 1
    assert run("verify", directory, code=3)["stale"] == stale
    assert run("repair", directory)["built"] == 1
    assert run("verify", directory)["complete"]
    after = digests(directory)
    assert {name for name in before if before[name] != after[name]} == {f"{stale[0]:06d}.chunk"}
    # What lies behind the edit moved in the file, and is found where it is now.
    chunk(directory, stale[0] + 1).unlink()
    run("fill", directory)
    assert digests(directory) == after


def test_appended_lines_become_new_chunks_and_nothing_else(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    lines = corpus.read_text().splitlines(keepends=True)
    source.write_text("".join(lines[:-40]))
    directory = tmp_path / "set"
    first = build(source, tokenizer, directory)
    before = digests(directory)
    with source.open("a") as file:
        file.writelines(lines[-40:])
    assert run("show", directory)["stale"] == []
    grown = run("grow", directory, source)
    assert grown["new_documents"] == 40 and grown["total_chunks"] > first["total_chunks"]
    after = digests(directory)
    assert {name: after[name] for name in before} == before
    other = tmp_path / "other.jsonl"
    write_lines(other, ["another text", "and one more"])
    assert run("grow", directory, other)["new_documents"] == 2
    assert run("grow", directory, other)["new_documents"] == 0
    shown = run("verify", directory)
    assert shown["complete"] and shown["documents"] == len(lines) + 2


def test_a_lost_source_leaves_the_rest_usable(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    lines = corpus.read_text().splitlines(keepends=True)
    one.write_text("".join(lines[:800]))
    two.write_text("".join(lines[800:]))
    directory = tmp_path / "set"
    total = build([one, two], tokenizer, directory)["total_chunks"]
    two.unlink()
    flip(chunk(directory, total - 1))
    flip(chunk(directory, 0))
    ran = subprocess.run([*LMEMO, "chunks", "repair", str(directory)], capture_output=True, text=True)
    assert ran.returncode == 3
    assert "two.jsonl" in ran.stderr and re.search(r"two\.jsonl.*lines? \d+.*documents|documents.*lines? \d+", ran.stderr), ran.stderr
    assert run("show", directory)["missing"] == [total - 1]
    with pytest.raises(lmemo.Error, match="fill"):
        lmemo.ChunkSet(directory)
    rest = lmemo.ChunkSet(directory, allow_gaps=True)
    assert rest.gaps() == [total - 1] and sum(len(row) for row, _ in rest) == run("show", directory)["total_tokens"]


def test_metadata_is_made_anew(built: Path, tmp_path: Path) -> None:
    directory = copy_of(built, tmp_path / "set")
    data = json.loads((directory / "metadata.json").read_text())
    assert data["total_chunks"] == len(digests(directory)) and data["compression_enabled"] and data["max_length"] == 512
    assert data["chunks"][1]["sha256"] == digests(directory)["000001.chunk"]
    assert data["utilization_stats"]["efficiency_ratio"] == 1
    (directory / "metadata.json").write_text("{}")
    (directory / "registry.seg").unlink()
    run("verify", directory)
    again = json.loads((directory / "metadata.json").read_text())
    assert again["chunks"] == data["chunks"]


# Inputs.


def test_broken_lines_are_counted_and_named_and_nothing_else_is_lost(tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_bytes(b'{"text": "good"}\n{"text": \n\n{"other": 1}\n{"text": "\xff"}\n{"text": ""}\n{"text": "also good"}')
    ran = subprocess.run([*LMEMO, "chunks", "build", str(source), "-t", str(tokenizer), "-o", str(tmp_path / "set"), "--json"], capture_output=True, text=True)
    report = json.loads(ran.stdout)
    assert ran.returncode == 0 and report["documents"] == 2
    assert report["left_out"] == {"broken": 1, "invalid_utf8": 1, "missing_field": 1, "empty": 1, "too_short": 0, "duplicates": 0}
    assert "bad.jsonl:2" in ran.stderr and "bad.jsonl:4" in ran.stderr
    strict = subprocess.run([*LMEMO, "chunks", "build", str(source), "-t", str(tokenizer), "-o", str(tmp_path / "strict"), "--strict"], capture_output=True, text=True)
    assert strict.returncode == 1 and "bad.jsonl:2" in strict.stderr
    assert run("verify", tmp_path / "set")["complete"]


def test_compressed_lines_texts_and_globs_give_the_same_tokens(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    plain = build(corpus, tokenizer, tmp_path / "plain")
    same = build(packed, tokenizer, tmp_path / "packed")
    assert (same["tokens"], same["documents"]) == (plain["tokens"], plain["documents"])
    assert list(digests(tmp_path / "packed").values()) == list(digests(tmp_path / "plain").values())
    texts = build(Path(f"{CORPUS}/w*.txt"), tokenizer, tmp_path / "texts")
    assert texts["documents"] == len(list(CORPUS.glob("w*.txt")))


def test_duplicates_are_left_out_also_when_a_set_grows(tokenizer: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_lines(one, ["a text", "another", "a text"])
    write_lines(two, ["another", "a third"])
    report = build(one, tokenizer, tmp_path / "set", "--dedup")
    assert (report["documents"], report["left_out"]["duplicates"]) == (2, 1)
    grown = run("grow", tmp_path / "set", two)
    assert (grown["documents"], grown["left_out"]["duplicates"]) == (1, 1)
    assert run("verify", tmp_path / "set")["complete"]


def test_other_parameters_are_refused_by_name(built: Path, corpus: Path, tokenizer: Path) -> None:
    ran = subprocess.run([*LMEMO, "chunks", "build", str(corpus), "-t", str(tokenizer), "-o", str(built), "--sequence-length", "1024"], capture_output=True, text=True)
    assert ran.returncode == 1 and "sequence_length: the set has 512, asked for 1024" in ran.stderr


def test_settings_may_stand_in_a_file(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "lmemo.toml").write_text(f'[chunks]\ntokenizer = "{tokenizer}"\nsequence_length = 256\nadd_eos = true\noutput = "{tmp_path}/set"\n')
    ran = subprocess.run([*LMEMO, "chunks", "build", str(corpus), "--json"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    shown = run("show", tmp_path / "set")
    assert shown["sequence_length"] == 256


# Other people's formats.


def test_parquet_and_http_come_in_through_python(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    import functools
    import http.server
    import threading

    import pyarrow
    import pyarrow.parquet

    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()][:300]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "n": list(range(len(texts)))}), tmp_path / "rows.parquet")
    write_lines(tmp_path / "rows.jsonl", texts)
    plain = build(tmp_path / "rows.jsonl", tokenizer, tmp_path / "plain")
    table = build(tmp_path / "rows.parquet", tokenizer, tmp_path / "table")
    assert (table["documents"], table["tokens"]) == (plain["documents"], plain["tokens"])

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fetched = run("build", f"http://127.0.0.1:{server.server_port}/rows.jsonl", "-t", tokenizer, "-o", tmp_path / "fetched", "--chunk-sequences", 100)
        server.shutdown()
    assert (fetched["documents"], fetched["tokens"]) == (plain["documents"], plain["tokens"])
    assert run("verify", tmp_path / "fetched")["complete"]  # Without the network.


def test_the_corpus_comes_back_whole(built: Path, corpus: Path, tmp_path: Path) -> None:
    """Every document of HuggingFace's ids is in exactly one place: whole, or as full rows and a rest."""
    from collections import Counter

    import numpy

    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()]
    expected: Counter[tuple[int, ...]] = Counter()
    for encoding in tokenizer_vocabularies.huggingface("gpt2").encode_batch(texts, add_special_tokens=False):
        expected.update(tuple(encoding.ids[at : at + 512]) for at in range(0, len(encoding.ids), 512))
    run("export", built, "--to", "npy", "--output", tmp_path / "npy")
    tokens, lengths = numpy.load(tmp_path / "npy" / "tokens.npy").tolist(), numpy.load(tmp_path / "npy" / "seq_lengths.npy").tolist()
    found: Counter[tuple[int, ...]] = Counter()
    at = 0
    for length in lengths:
        found[tuple(tokens[at : at + length])] += 1
        at += length
    assert at == len(tokens)
    assert found == expected
