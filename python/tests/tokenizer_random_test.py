"""Tokenizers of parts drawn at random, each as HuggingFace understands it: the same ids, or a refusal.

The traps change one thing at a time (tokenizer_traps_test.py); here parts meet that nobody has put together. For more:

    LMEMO_TEST_SCALE=10000 .venv/bin/python -m pytest python/tests/tokenizer_random_test.py

What it finds becomes a test. LMEMO_FUZZ_SEED chooses other tokenizers.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")
sys.path.insert(0, str(Path(__file__).parent))

from tokenizer_parts_test import BEHAVIORS, SPLIT_REGEXES, split  # noqa: E402
from tokenizer_traps_test import BASES, SPECIAL, File, added, compare, padding, sentence_piece, template, truncation  # noqa: E402

GROUPS = 8
EACH = 10 * int(os.environ.get("LMEMO_TEST_SCALE", "100")) // 100
SEED = int(os.environ.get("LMEMO_FUZZ_SEED", "5"))

TEXTS = [" ", "\n", "  ", "'", "a", "ab", "▁", "Ġ", "é", "\u0301", "the", "\u00a0", "中", ""]
REGEXES = [*SPLIT_REGEXES.values(), r"\s+", r"\w+|[^\w\s]+", r"\n+", r"\b", "(?<=[a-z])(?=[A-Z])", "^", "$", ".+", "(?i:[a-z]+)", r"(\p{L}\p{M}*)+?", r"\p{Han}{1,2}"]
ATOMS = [r"\p{L}", r"\p{N}", r"\p{M}", r"\p{P}", r"\p{Lu}", r"\s", r"\S", r"\w", r"\d", "[a-z]", "[^a-z]", r"[^\s\p{L}\p{N}]", r"[\r\n]", " ", "a", "'", ".", "é", r"(?!\S)", r"(?=\d)", r"\b"]
REPEATS = ["", "", "+", "*", "?", "{2}", "{1,3}", "+?", "*?", "++", "?+"]
TOKENS = [*SPECIAL, "<unk>", " ", "\n", "\n\n", "é", "e\u0301", "İ", "'s", "中文", "👨‍👩‍👧", "1", "\u00a0", "s>", "Ġ", "ing", "ﬁ", "각", "\ufeff", "_"]


def regex(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(REGEXES)
    words = ["".join(rng.choice(ATOMS) + rng.choice(REPEATS) for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 4))]
    return "|".join(words)


def pattern(rng: random.Random) -> dict[str, str]:
    return {"String": rng.choice(TEXTS)} if rng.random() < 0.3 else {"Regex": regex(rng)}


def sequence_of(rng: random.Random, name: str, make: Any, depth: int) -> File:
    return {"type": "Sequence", name: [make(rng, depth + 1) for _ in range(rng.randint(0, 3))]}


def normalizer(rng: random.Random, depth: int = 0) -> File:
    def flag() -> bool:
        return rng.random() < 0.5

    kind = rng.choice(["form", "form", "Strip", "BertNormalizer", "Prepend", "Replace", "Replace"] + ["Sequence"] * (3 - depth))
    if kind == "Strip":
        return {"type": kind, "strip_left": flag(), "strip_right": flag()}
    if kind == "BertNormalizer":
        options = {"clean_text": flag(), "handle_chinese_chars": flag(), "lowercase": flag()}
        return {"type": kind, **options, "strip_accents": rng.choice([None, False, True])}
    if kind == "Prepend":
        return {"type": kind, "prepend": rng.choice(["▁", " ", "xy", "\u0301", ""])}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(rng), "content": rng.choice(["▁", " ", "", "yy", "$1", "\u0301", "\n"])}
    if kind == "Sequence":
        return sequence_of(rng, "normalizers", normalizer, depth)
    return {"type": rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"])}


def pre_tokenizer(rng: random.Random, depth: int = 0) -> File:
    def flag() -> bool:
        return rng.random() < 0.5

    kind = rng.choice(["plain", "ByteLevel", "ByteLevel", "Split", "Split", "Punctuation", "Digits", "CharDelimiterSplit", "Metaspace", "Metaspace"]
                      + ["Sequence"] * (3 - depth))  # fmt: skip
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flag(), "trim_offsets": flag(), "use_regex": flag()}
    if kind == "Split":
        return split(pattern(rng), rng.choice(BEHAVIORS), rng.random() < 0.25)
    if kind == "Punctuation":
        return {"type": kind, "behavior": rng.choice(BEHAVIORS)}
    if kind == "Digits":
        return {"type": kind, "individual_digits": flag()}
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": rng.choice("- \né▁中")}
    if kind == "Metaspace":
        return {"type": kind, "replacement": rng.choice("▁▁_ é"), "prepend_scheme": rng.choice(["always", "first", "never"]), "split": flag()}
    if kind == "Sequence":
        return sequence_of(rng, "pretokenizers", pre_tokenizer, depth)
    return {"type": rng.choice(["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts"])}


def decoder(rng: random.Random, depth: int = 0) -> File:
    llama = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
             {"type": "Strip", "content": " ", "start": 1, "stop": 0}]  # fmt: skip
    choices: list[File] = [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "WordPiece", "prefix": rng.choice(["##", "", "a"]), "cleanup": rng.random() < 0.5},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["always", "first", "never"]), "split": True},
        {"type": "BPEDecoder", "suffix": rng.choice(["</w>", "a"])},
        {"type": "CTC", "pad_token": "a", "word_delimiter_token": "e", "cleanup": rng.random() < 0.5},
        {"type": "Sequence", "decoders": llama},
    ]
    if depth < 2:
        choices.append(sequence_of(rng, "decoders", decoder, depth))
    return rng.choice(choices)


def tokenizer(rng: random.Random) -> File:
    content = BASES[rng.choice(list(BASES))]()
    model = content["model"]
    size = len(model["vocab"])
    if rng.random() < 0.6:
        content["normalizer"] = normalizer(rng) if rng.random() < 0.8 else None
    if rng.random() < 0.6:
        content["pre_tokenizer"] = pre_tokenizer(rng) if rng.random() < 0.8 else None
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    content["added_tokens"] = content["added_tokens"] * rng.randint(0, 1) + [
        added(rng.choice(TOKENS) + rng.choice(["", "", "", rng.choice(TOKENS)]), rng.randrange(size + 50), **{name: rng.random() < 0.3 for name in names})
        for _ in range(rng.choice([0, 2, 4, 8]))
    ]
    if rng.random() < 0.5:
        content["post_processor"] = template(*rng.choices(["A", "<s>", "</s>"], k=rng.randint(1, 4)))
    content["decoder"] = decoder(rng)
    if rng.random() < 0.15:
        content["truncation"] = truncation(max_length=rng.choice([9, 20]), direction=rng.choice(["Left", "Right"]), stride=rng.choice([0, 2]))
    if rng.random() < 0.15:
        content["padding"] = padding(direction=rng.choice(["Left", "Right"]), pad_to_multiple_of=rng.choice([None, 8]))
    if model["type"] == "BPE":
        model.update(ignore_merges=rng.random() < 0.2, fuse_unk=rng.random() < 0.5)
        model["unk_token"] = rng.choice([model["unk_token"], None, "a", "nowhere"])
    return content


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_marks_of_sentence_pieces(group: int) -> None:
    """Where a text begins, and a stretch behind an added token, as each scheme of Metaspace has it."""
    rng = random.Random(f"marks {SEED} {group}")
    outcomes = []
    for _ in range(max(2, EACH // 2)):
        content = {**sentence_piece(), "normalizer": normalizer(rng) if rng.random() < 0.25 else None}
        content["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["always", "first", "never"]), "split": rng.random() < 0.3}
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        content["added_tokens"] = [added(rng.choice([*TOKENS, "▁", "a", "e"]), 0, **{name: rng.random() < 0.3 for name in names}) for _ in range(rng.randint(0, 4))]
        outcomes.append(compare(content))
    assert "same" in outcomes, outcomes


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_tokenizers(group: int) -> None:
    rng = random.Random(f"{SEED} {group}")
    outcomes = [compare(tokenizer(rng)) for _ in range(max(1, EACH))]
    assert "same" in outcomes, outcomes
