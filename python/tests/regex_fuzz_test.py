"""Random patterns of the supported grammar, in our engine and in HuggingFace's: the same cuts, or a refusal."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from nasty_texts import nasty_texts
from tokenizer_parts import ask, huggingface

pytest.importorskip("tokenizers")

PATTERNS = 100 * int(os.environ.get("LMEMO_TEST_SCALE", "100")) // 100
TEXTS = [text[:60] for text in nasty_texts(60, seed=5)] + ["aab\nab1 2.\n", "ba ab\n\naB", "\nA1b", "aaaa", "abab 's'S'ſ k\u212aK"]
ATOMS = [
    "a", "b", "'", " ", "1", r"\.", r"\n", r"\r\n", r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", r"\p{Lu}", r"\P{L}", r"\p{^N}", r"\p{N}", r"\p{M}", ".",
    r"[ab]", r"[^ab]", r"[a-z0-9]", r"[^\s\p{L}\p{N}]", r"[\p{L}&&[^a-f]]", r"[\p{L}\p{M}&&\p{Lu}]", r"[^\p{L}&&\P{M}]", r"[-a]", r"[a-]", r"[\-\]]", r"\x{61}", r"\u0062", "é", "漢", r"\p{Han}",
    r"[a&&[ab]]", r"[a[bc]]", r"[^a[bc]]",
]  # fmt: skip
ASSERTIONS = ["^", "$", r"\A", r"\z", r"\b", r"\B", r"(?!\S)", r"(?=a)", r"(?<=a)", r"(?<!\s)", r"(?<=ab|b1)", r"(?!ab|\s\n)"]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}", "{1,2}?", "{2}?", "{1,2}+", "{2}+", "{2,}?"]


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    def piece() -> str:
        kind = rng.random()
        if kind < 0.1:
            return rng.choice(ASSERTIONS)
        if kind < 0.3 and depth < 3:
            return rng.choice(["(", "(?:", "(?:", "(?>"]) + random_pattern(rng, depth + 1) + ")" + rng.choice(REPEATS)
        if kind < 0.35:
            return rng.choice(["(?i:'s|'ll|k)", "(?i:[a-k])", "(?i:ab)"]) + rng.choice(REPEATS)
        return rng.choice(ATOMS) + rng.choice(REPEATS)

    return "|".join("".join(piece() for _ in range(rng.randrange(1, 4))) for _ in range(rng.choice([1, 1, 2, 3])))


def cut_by_huggingface(part: dict[str, Any], text: str) -> list[str] | None:
    """None if its engine gives up: it refuses some empty repeats, and panics after ten million retries."""
    try:
        return [piece for piece, _ in huggingface(None, part).pre_tokenizer.pre_tokenize_str(text)]
    except BaseException as error:
        if "target of repeat" in str(error) or "retry-limit" in str(error):
            return None
        raise


def test_random_patterns_cut_alike_or_are_refused() -> None:
    rng = random.Random(int(os.environ.get("LMEMO_FUZZ_SEED", "7")))
    patterns = [random_pattern(rng) for _ in range(PATTERNS)]
    refused, compared = 0, 0
    for pattern in patterns:
        part = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        made, *ours = ask([{"pre_tokenizer": part}, *({"split": text} for text in TEXTS)])
        if made != "ok":
            refused += 1
            continue
        for text, got in zip(TEXTS, ours, strict=True):
            want = cut_by_huggingface(part, text)
            assert want is None or want == got, (pattern, text)
        compared += 1
    assert compared > refused, f"{compared} patterns compared, {refused} refused"


def test_random_patterns_are_cut_alike_on_utf8() -> None:
    """By the fast engine, where it takes a pattern, and by the reference."""
    rng = random.Random(int(os.environ.get("LMEMO_FUZZ_SEED", "8")))
    taken = 0
    for pattern in [random_pattern(rng) for _ in range(PATTERNS)]:
        part = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        if ask([{"pre_tokenizer": part}, {"quick_regex": pattern}]) != ["ok", "ok"]:
            continue
        taken += 1
        _, *expected = ask([{"pre_tokenizer": part}, *({"split": text} for text in TEXTS)])
        _, *found = ask([{"quick_regex": pattern}, *({"quick_split": text} for text in TEXTS)])
        assert found == expected, pattern
    assert taken > PATTERNS // 5
