"""Chunk sets for tests: made-up documents, written by the engine itself in a few milliseconds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("LMEMO_BUILD_DIR", ROOT / "build" / "dev")) / "tests" / "programs" / "make_chunk_set"


def make_chunk_set(
    directory: Path, chunks: int = 3, documents: int = 120, *, max_tokens: int = 90, length: int = 64, vocabulary: int = 500, compression: str = "zstd"
) -> Path:
    """Makes a set, or appends chunks to the one that is there."""
    numbers = [chunks, documents, max_tokens, length, vocabulary]
    subprocess.run([PROGRAM, directory, *map(str, numbers), compression], check=True)
    return directory
