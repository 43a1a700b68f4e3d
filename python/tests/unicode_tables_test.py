"""The Unicode tables equal HuggingFace's beliefs on every code point: the real parts, on all of them, in both."""

from __future__ import annotations

import base64
import itertools
import os
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tokenizer_parts import compare_normalizer, compare_pre_tokenizer

pytest.importorskip("tokenizers")

IS_FULL = int(os.environ.get("LMEMO_TEST_SCALE", "100")) >= 1000
# Where characters are assigned every one, elsewhere every 64th; with LMEMO_TEST_SCALE=1000 all 1,112,064.
CHARACTERS = [
    chr(c)
    for c in range(0x110000)
    if not 0xD800 <= c < 0xE000 and (IS_FULL or c < 0x32400 or 0xE0000 <= c < 0xE0200 or c % 64 == 0)
]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = (
    "Han Hiragana Katakana Hangul Bopomofo Latin Greek Cyrillic Armenian Hebrew Arabic Devanagari Bengali Tamil "
    "Thai Lao Tibetan Myanmar Georgian Ethiopic Khmer Mongolian Common Inherited"
).split()


def texts_of(template: Callable[[str], str], characters: list[str] = CHARACTERS, size: int = 8192) -> list[str]:
    """All characters, each in its surroundings, many to a text. A newline combines with nothing."""
    return ["\n".join(map(template, characters[at : at + size])) for at in range(0, len(characters), size)]


def split_regex(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def class_regexes() -> dict[str, str]:
    """Enough classes to tell all categories and all scripts apart: by the bits of their numbers."""
    regexes = {"space": r"\s+", "word": r"\w+", "L": r"\p{L}+", "N": r"\p{N}+", "M": r"\p{M}+", "P": r"\p{P}+", "S": r"\p{S}+", "Z": r"\p{Z}+"}
    # Oniguruma has two tables of \w, one for use inside brackets.
    regexes |= {"bracketed-word": r"[\w]+", "bracketed-no-word": r"[\W]+", "no-word": r"\W+", "bracketed-digit": r"[\d]+", "bracketed-space": r"[\S]+"}
    for kind, names in (("category", CATEGORIES), ("script", SCRIPTS)):
        for bit in range(5):
            chosen = [name for number, name in enumerate(names, 1) if number >> bit & 1]
            regexes[f"{kind}-{bit}"] = "[" + "".join(rf"\p{{{name}}}" for name in chosen) + "]+"
    return regexes


@pytest.mark.parametrize("name", class_regexes())
def test_regex_classes_agree_on_every_code_point(name: str) -> None:
    compare_pre_tokenizer(split_regex(class_regexes()[name]), texts_of(str))


@pytest.mark.parametrize("letter", "aiksKS")
def test_caseless_letters_agree_on_every_code_point(letter: str) -> None:
    compare_pre_tokenizer(split_regex(f"(?i:{letter})"), texts_of(str))


@pytest.mark.parametrize("part", ["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation", "Digits"])
def test_character_classes_agree_on_every_code_point(part: str) -> None:
    options: dict[str, Any] = {"Punctuation": {"behavior": "Isolated"}, "Digits": {"individual_digits": True}}.get(part, {})
    compare_pre_tokenizer({"type": part, **options}, texts_of(lambda c: f"a{c}!b"))


def test_scripts_agree_on_every_code_point() -> None:
    shuffled = list(CHARACTERS)
    random.Random(1).shuffle(shuffled)
    for characters in (CHARACTERS, shuffled):
        compare_pre_tokenizer({"type": "UnicodeScripts"}, ["".join(characters[at : at + 8192]) for at in range(0, len(characters), 8192)])


@pytest.mark.parametrize("part", ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"])
def test_normalizers_agree_on_every_code_point(part: str) -> None:
    compare_normalizer({"type": part}, texts_of(lambda c: f"a\n{c}\nb"))


def test_strip_agrees_on_every_code_point() -> None:
    compare_normalizer({"type": "Strip", "strip_left": True, "strip_right": True}, [f"{c}x{c}" for c in CHARACTERS[:0x3100]])


@pytest.mark.parametrize("which", ["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"])
def test_bert_options_agree_on_every_code_point(which: str) -> None:
    options = {name: name == which for name in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")}
    compare_normalizer({"type": "BertNormalizer", **options}, texts_of(lambda c: f"a{c}b"))


@pytest.mark.parametrize("part", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normal_forms_agree_on_sequences(part: str) -> None:
    """Every mark of a class with every other, in random orders behind every letter that composes."""
    import unicodedata

    marks = [c for c in CHARACTERS if unicodedata.combining(c)]
    composed = [c for c in CHARACTERS if unicodedata.normalize("NFD", c) != c and not "가" <= c <= "힣"]
    seconds = sorted({unicodedata.normalize("NFD", c)[-1] for c in composed})
    firsts = sorted({unicodedata.normalize("NFC", unicodedata.normalize("NFD", c)[:-1]) for c in composed} - {""})
    pairs = [first + second for first, second in itertools.product(firsts, seconds)]
    rng = random.Random(2)
    jamo = [chr(c) for c in (*range(0x10FF, 0x1114), *range(0x1160, 0x1177), *range(0x11A6, 0x11C4), 0xAC00, 0xAC01, 0xAC1C, 0xD7A3)]
    mixed = ["".join(rng.choices(composed + firsts, k=1) + rng.choices(marks + seconds, k=rng.randrange(1, 7))) for _ in range(60_000)]
    hangul = ["".join(rng.choices(jamo + marks[:5], k=5)) for _ in range(20_000)]
    compare_normalizer({"type": part}, texts_of(str, pairs + mixed + hangul, 256))


def charsmap_that_shows_clusters() -> str:
    """Every cluster under six bytes becomes an X: the key is its first byte, whatever that is."""
    units = [0xFF] * 1024
    units[0] = 256 << 10
    for byte in range(1, 256):
        units[256 ^ byte] = ((256 ^ byte ^ 512) << 10) | 0x100 | byte
    units[512] = 0x80000000
    return base64.b64encode(struct.pack("<I1024I", 4096, *units) + b"X\0").decode()


@pytest.mark.parametrize("around", ["a{}", "{}b", "\u0600{}", "\u00a9\u200d{}", "\u0600\u1100{}", "\u0600{}\u1161", "\u0600{}\u11a8", "\u00e9{}\u0301", "{}\u0301", "\r{}", "{}\n"])
def test_grapheme_clusters_agree_on_every_code_point(around: str) -> None:
    part = {"type": "Precompiled", "precompiled_charsmap": charsmap_that_shows_clusters()}
    compare_normalizer(part, texts_of(around.format))
