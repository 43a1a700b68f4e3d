"""No leak between Python and the engine: what a call takes, it gives back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("tokenizers")

from tokenizer_traps_test import byte_level  # noqa: E402

import lmemo  # noqa: E402
from lmemo._core import NativeTokenizer  # noqa: E402

SCALE = int(os.environ.get("LMEMO_TEST_SCALE", "100")) / 100
TEXTS = [f"Hello {number} it's été 漢字 <s>" for number in range(200)]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


FILE = json.dumps(byte_level())


def tokenizer() -> lmemo.Tokenizer:
    return lmemo.Tokenizer(NativeTokenizer.from_json(FILE))


TOKENIZER = tokenizer()


def failing_calls() -> None:
    for wrong in ([1], ["a", None], "text", [b"\xff"]):
        try:
            TOKENIZER.encode_batch(wrong)  # type: ignore[arg-type]
        except (TypeError, ValueError, lmemo.Error):
            pass


CALLS: dict[str, tuple[Callable[[], object], int]] = {
    "encode": (lambda: [TOKENIZER.encode(text) for text in TEXTS], 30),
    "encode_batch": (lambda: [ids for ids in TOKENIZER.encode_batch(TEXTS, threads=2)], 30),
    "numpy": (lambda: TOKENIZER.encode_batch(numpy.array(TEXTS)), 30),
    "lengths": (lambda: TOKENIZER.encode_batch(TEXTS, truncation=4, padding=lmemo.Padding(8)), 30),
    "decode": (lambda: TOKENIZER.decode(TOKENIZER.encode(TEXTS[0])), 300),
    "failing": (failing_calls, 300),
    "load": (tokenizer, 30),
}


@pytest.mark.parametrize("name", CALLS)
def test_memory_stays_flat(name: str) -> None:
    call, count = CALLS[name]
    for _ in range(count):
        call()
    before = resident_bytes()
    for _ in range(int(count * 5 * SCALE)):
        call()
    assert resident_bytes() < before + 4_000_000
