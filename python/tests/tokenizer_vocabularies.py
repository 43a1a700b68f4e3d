"""The vocabularies of the parity tests, and HuggingFace's tokenizer for each.

They are not part of the project (some have use terms of their own). LMEMO_TOKENIZERS names the folder, with
NAME/tokenizer.json.gz in it; else ../shared/tokenizers beside the checkout.
"""

from __future__ import annotations

import functools
import gzip
import os
from pathlib import Path

import tokenizers

ROOT = Path(__file__).resolve().parents[2]


def folder() -> Path:
    return Path(os.environ.get("LMEMO_TOKENIZERS", ROOT.parent / "shared" / "tokenizers"))


def names() -> list[str]:
    return sorted(path.parent.name for path in folder().glob("*/tokenizer.json.gz"))


@functools.lru_cache(maxsize=2)  # Tests come sorted by vocabulary; all of them at once would be 4 GB.
def json_of(name: str) -> str:
    return gzip.decompress((folder() / name / "tokenizer.json.gz").read_bytes()).decode()


@functools.lru_cache(maxsize=2)
def huggingface(name: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(json_of(name))
