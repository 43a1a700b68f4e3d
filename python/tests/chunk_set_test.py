"""lmemo.ChunkSet: rows by number, batches, and what it refuses to open."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from made_up_chunks import make_chunk_set

import lmemo


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set")


def test_rows_have_tokens_and_boundaries(directory: Path) -> None:
    chunks = lmemo.ChunkSet(directory)
    total = 0
    for tokens, lengths in chunks:
        assert sum(lengths) == len(tokens) <= chunks.sequence_length
        assert tokens.dtype == numpy.uint32 and int(tokens.max()) < 500
        total += len(tokens)
    info = chunks.info()
    assert total == info["total_tokens"] and len(chunks) == info["total_sequences"]
    assert info["complete"] and chunks.is_complete and chunks.gaps() == []
    assert numpy.array_equal(chunks[-1].tokens, chunks[len(chunks) - 1].tokens)
    with pytest.raises(IndexError):
        chunks[len(chunks)]


def test_batches_are_rows_side_by_side(directory: Path) -> None:
    chunks = lmemo.ChunkSet(directory)
    wanted = [5, 0, -1, 5, len(chunks) // 2]
    batch = chunks.batch(wanted, pad_id=499)
    assert batch.input_ids.shape == (5, chunks.sequence_length) and batch.input_ids.dtype == numpy.int64
    for index, row, lengths in zip(wanted, batch.input_ids, batch.seq_lengths):
        tokens, expected = chunks[index]
        assert lengths == expected
        assert numpy.array_equal(row[: len(tokens)], tokens) and (row[len(tokens) :] == 499).all()
    assert len(chunks.batch([])) == 0
    with pytest.raises(IndexError):
        chunks.batch([0, len(chunks)])


def test_the_first_batch_needs_no_numpy(directory: Path) -> None:
    code = f"import lmemo, sys; b = lmemo.ChunkSet({str(directory)!r}).batch(range(8)); print(b.buffer.shape[0], 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["8", "False"]


def test_gaps_are_refused_unless_allowed(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 4)
    whole = lmemo.ChunkSet(directory)
    files = sorted((directory / "chunks").iterdir())
    files[1].unlink()
    files[2].write_bytes(files[2].read_bytes()[:-1])
    with pytest.raises(lmemo.InvalidArgument, match=r"2 of 4 chunks are missing.*lmemo chunks fill"):
        lmemo.ChunkSet(directory)
    some = lmemo.ChunkSet(directory, allow_gaps=True)
    assert some.gaps() == [1, 2] and not some.is_complete and some.info()["missing"] == [1, 2]
    assert len(some) == whole.chunk_rows[0] + whole.chunk_rows[3]
    assert numpy.array_equal(some[0].tokens, whole[0].tokens)
    with pytest.raises(lmemo.InvalidArgument, match="lmemo chunks build"):
        lmemo.ChunkSet(tmp_path)


def test_a_foreign_tokenizer_is_refused(directory: Path) -> None:
    own = lmemo.ChunkSet(directory).tokenizer
    assert len(lmemo.ChunkSet(directory, tokenizer=own))
    with pytest.raises(lmemo.Incompatible, match="made with tokenizer made up"):
        lmemo.ChunkSet(directory, tokenizer="0" * 64)
    with pytest.raises(lmemo.InvalidArgument):
        lmemo.ChunkSet(directory, tokenizer="gpt2")


def test_a_flipped_bit_is_an_error_and_no_token(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 3000)
    chunks = lmemo.ChunkSet(directory)
    file = next((directory / "chunks").iterdir())
    times = file.stat()
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 4
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    broken = 0
    for row in range(0, len(chunks), 16):
        try:
            chunks[row]
        except lmemo.Corruption:
            broken += 1
    assert broken > 0


def test_growth_is_seen_by_opening_again(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2)
    before = lmemo.ChunkSet(directory)
    rows = [before[row].tokens.tolist() for row in range(len(before))]
    make_chunk_set(directory, 1)
    after = lmemo.ChunkSet(directory)
    assert len(before) < len(after) and before.identity != after.identity
    assert after.digest_of_first(2) == before.identity
    assert [after[row].tokens.tolist() for row in range(len(before))] == rows


def test_pickles_and_forks(directory: Path) -> None:
    chunks = lmemo.ChunkSet(directory)
    first = chunks[0].tokens.tolist()
    assert pickle.loads(pickle.dumps(chunks))[0].tokens.tolist() == first
    child = os.fork()
    if child == 0:
        os._exit(0 if chunks[0].tokens.tolist() == first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
