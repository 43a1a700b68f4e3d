"""How full rows are, on a real mix of code, prose and short sections; by counts."""

from __future__ import annotations

import os
import site
from collections.abc import Iterator
from pathlib import Path

import pytest
from chunk_commands import documents, run, tokenizer, write_lines  # noqa: F401

import lmemo

MIXED_BYTES = 40_000_000


def real_texts() -> Iterator[str]:
    """Sections of prose, then the sources of Python and of what is installed in it."""
    yield from documents()
    for folder in (os.path.dirname(os.__file__), *site.getsitepackages()):
        for file in sorted(Path(folder).rglob("*.py")):
            if "tests" not in file.parts:
                yield file.read_text(encoding="utf-8", errors="ignore")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path) -> tuple[Path, list[int]]:
    """JSON lines, and how many tokens each has."""
    texts: dict[str, None] = {}
    total = 0
    for text in real_texts():
        if text and text not in texts:
            texts[text] = None
            total += len(text)
        if total > MIXED_BYTES:
            break
    path = tmp_path_factory.mktemp("mixed") / "mixed.jsonl"
    write_lines(path, list(texts))
    batch = lmemo.Tokenizer.from_file(tokenizer).encode_batch(list(texts))
    return path, [len(ids) for ids in batch]


@pytest.mark.parametrize("length", [512, 2048, 8192])
def test_rows_are_full_and_no_document_is_cut_that_fits(mixed: tuple[Path, list[int]], tokenizer: Path, tmp_path: Path, length: int) -> None:
    path, tokens = mixed
    build = ["build", path, "-t", tokenizer, "-o", tmp_path / "set", "--sequence-length", length, "--compression", "none", "--chunk-sequences", 8000]
    report = run(*build)
    shown = run("show", tmp_path / "set")
    assert report["documents"] == len(tokens) and report["tokens"] == report["tokens_in"] == shown["total_tokens"] == sum(tokens)
    chunks = lmemo.ChunkSet(tmp_path / "set")
    batch = chunks.batch(range(len(chunks)))
    pieces = [piece for lengths in batch.seq_lengths for piece in lengths]
    # A document that fits is one piece; a longer one is full rows and at most one rest.
    assert len(pieces) == sum(-(-count // length) for count in tokens)
    assert pieces.count(length) == sum(count // length for count in tokens)
    assert shown["utilization"] == pytest.approx(sum(tokens) / (len(chunks) * length))
    assert shown["utilization"] >= 0.999
