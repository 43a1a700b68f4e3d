"""What `lmemo chunks export` writes, opened by those it is written for."""

from __future__ import annotations

import resource
import subprocess
import sys
import types
from pathlib import Path

import datasets
import numpy
import pytest
from chunk_commands import LMEMO, built, corpus, run, tokenizer  # noqa: F401
from made_up_chunks import make_chunk_set

import lmemo

Rows = list[tuple[list[int], list[int]]]


def rows_of(directory: Path) -> Rows:
    return [(tokens.tolist(), list(lengths)) for tokens, lengths in lmemo.ChunkSet(directory)]


def exported(directory: Path, name: str, to: Path) -> Path:
    assert run("export", directory, "--to", name, "--output", to)["rows"] == run("show", directory)["total_sequences"]
    return to


def from_arrow(folder: Path) -> Rows:
    return [(row["input_ids"], row["seq_lengths"]) for row in datasets.load_from_disk(str(folder))]


def from_npy(folder: Path) -> Rows:
    tokens, offsets = numpy.load(folder / "tokens.npy"), numpy.load(folder / "row_offsets.npy")
    lengths, pieces = numpy.load(folder / "seq_lengths.npy"), numpy.load(folder / "piece_offsets.npy")
    ranges = zip(zip(offsets, offsets[1:]), zip(pieces, pieces[1:]), strict=True)
    return [(tokens[a:b].tolist(), lengths[c:d].tolist()) for (a, b), (c, d) in ranges]


def from_mds(folder: Path) -> Rows:
    sys.modules.setdefault("streaming.vision", types.ModuleType("streaming.vision"))  # It would ask for torchvision.
    from streaming import LocalDataset

    rows = LocalDataset(local=str(folder))
    return [(rows[number]["input_ids"].tolist(), rows[number]["seq_lengths"].tolist()) for number in range(len(rows))]


def from_megatron(folder: Path) -> Rows:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It would like to have Transformer Engine.
        from megatron.core.datasets.indexed_dataset import IndexedDataset

    rows = IndexedDataset(str(folder / "rows"))
    assert list(rows.document_indices) == list(range(len(rows) + 1))
    return [(rows[number].tolist(), []) for number in range(len(rows))]


READERS = {"arrow": from_arrow, "npy": from_npy, "mds": from_mds, "megatron": from_megatron}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("vocabulary", [500, 100_000])
def test_every_row_arrives(tmp_path: Path, name: str, vocabulary: int) -> None:
    """Also ids of more than two bytes, rows longer than 255 tokens and one document, rows with many."""
    directory = make_chunk_set(tmp_path / "set", 2, 300, max_tokens=400, length=700, vocabulary=vocabulary)
    expected = rows_of(directory)
    if name == "megatron":
        expected = [(tokens, []) for tokens, _ in expected]
    assert READERS[name](exported(directory, name, tmp_path / "out")) == expected


def test_more_rows_than_one_shard_holds(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2, 24_000, max_tokens=400, length=2048, vocabulary=50_000, compression="none")
    found = from_mds(exported(directory, "mds", tmp_path / "out"))
    assert len(list((tmp_path / "out").glob("*.mds"))) == 2
    chunks = lmemo.ChunkSet(directory)
    assert len(found) == len(chunks)
    for number in {0, len(found) // 2, len(found) - 1, *range(0, len(found), 61)}:
        assert found[number] == (chunks[number][0].tolist(), list(chunks[number][1]))


def test_a_directory_that_is_there_is_left_alone(built: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    ran = subprocess.run([*LMEMO, "chunks", "export", str(built), "--to", "npy", "--output", str(tmp_path / "out")], capture_output=True, text=True)
    assert ran.returncode == 2 and "is there already" in ran.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["megatron", "mds", "arrow", "npy"])
def test_an_export_that_was_killed_is_in_nobodys_way(built: Path, tmp_path: Path, name: str) -> None:
    out, part = tmp_path / "out", tmp_path / "out.part"
    part.mkdir()
    for left in ("lock", "tokens.npy", "shard.00007.mds"):
        (part / left).write_text("half")
    run("export", built, "--to", name, "-o", out)
    assert not part.exists() and {"lock", "shard.00007.mds"}.isdisjoint(file.name for file in out.iterdir())
    words = [*LMEMO, "chunks", "export", str(built), "--to", name, "-o", str(tmp_path / "full")]
    ran = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert ran.returncode == 1 and "is the disk full?" in ran.stderr and not list(tmp_path.glob("full*"))
