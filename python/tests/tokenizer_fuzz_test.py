"""Random and mutated texts through lmemo's engine and HuggingFace's. Bounded in time: a little in every test run, on
small vocabularies; on all of them, and longer, with

    LMEMO_TEST_SCALE=10000 .venv/bin/python -m pytest python/tests/tokenizer_fuzz_test.py

What it finds becomes a test.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

tokenizers = pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

import tokenizer_texts as texts  # noqa: E402
import tokenizer_vocabularies as vocabularies  # noqa: E402
from nasty_texts import nasty_texts  # noqa: E402

import lmemo  # noqa: E402
from lmemo._core import NativeTokenizer  # noqa: E402

SCALE = int(os.environ.get("LMEMO_TEST_SCALE", "100")) / 100
SECONDS = 0.7 * SCALE  # Of each vocabulary.
SMALL = {"bert-minilm", "gpt2", "llama2", "mistral-v3", "starcoder", "t5"}  # HuggingFace loads the others for seconds.
NAMES = [name for name in vocabularies.names() if SCALE > 1 or name in SMALL]
SEED = int(os.environ.get("LMEMO_FUZZ_SEED", "11"))


def mutated(rng: random.Random, text: str, others: list[str]) -> str:
    """Cut, doubled, swapped, spliced with another, some characters replaced by their neighbours in Unicode."""
    for _ in range(rng.randint(1, 4)):
        a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:a] + text[a:b] * rng.randint(2, 5) + text[b:]
        elif kind == 2:
            text = text[b:] + text[a:b] + text[:a]
        elif kind == 3:
            other = rng.choice(others)
            cut = rng.randint(0, len(other))
            text = text[:a] + other[cut : cut + 30] + text[b:]
        elif kind == 4:
            text = text[:a] + rng.choice([text[a:b].upper(), text[a:b].lower(), text[a:b].title()]) + text[b:]
        elif kind == 5 and text:
            at = rng.randrange(len(text))
            point = min(max(ord(text[at]) + rng.randint(-2, 2), 0), 0x10FFFF)
            if not 0xD800 <= point < 0xE000:
                text = text[:at] + chr(point) + text[at + 1 :]
        else:
            text = text[:a] + rng.choice(["\n", " ", "\r\n", "'", "\u0301", "\u200d", "1", "\u00a0", "▁", "Ġ"]) + text[a:]
    return text[:400]


def cases(rng: random.Random, special_tokens: list[str]) -> Iterator[str]:
    seeds = nasty_texts(200, seed=rng.randrange(1 << 30)) + texts.PROSE + special_tokens[:20] + [text[:300] for _, text in texts.sources()]
    while True:
        yield mutated(rng, rng.choice(seeds), seeds)


@pytest.mark.parametrize("name", NAMES)
def test_random_texts(name: str) -> None:
    huggingface = vocabularies.huggingface(name)
    ours = lmemo.Tokenizer(NativeTokenizer.from_json(vocabularies.json_of(name)))
    rng = random.Random(f"{SEED} {name}")
    special_tokens = [token.content for token in huggingface.get_added_tokens_decoder().values()]
    generator = cases(rng, special_tokens)
    end = time.monotonic() + SECONDS
    count = 0
    while time.monotonic() < end:
        documents = [next(generator) for _ in range(50)]
        expected = [encoding.ids for encoding in huggingface.encode_batch(documents)]
        for document, ids, found in zip(documents, expected, ours.encode_batch(documents, threads=1)):
            assert found.tolist() == ids, document
        count += len(documents)
    assert count
