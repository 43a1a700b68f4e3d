"""Every normalizer, pre-tokenizer and split regex of the reference encoder against HuggingFace: not one text differs."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from nasty_texts import nasty_texts
from tokenizer_parts import ROOT, compare_normalizer, compare_pre_tokenizer, compare_starts

pytest.importorskip("tokenizers")

COUNT = 600 * int(os.environ.get("LMEMO_TEST_SCALE", "100")) // 100

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLIT_REGEXES = {
    "cl100k": CL100K,
    "cl100k-tiktoken": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt2-possessive": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "command-r": r"\d{1,3}(?=(?:\d{3})*\b)",
    "deepseek-coder-cjk": r"[一-龥ࠀ-一가-퟿]+",
    "deepseek-llm": "[\r\n]|\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+|\\s?[!-/:-~！-／：-～‘-‟　-。]+|\\s+$|[一-龥ࠀ-一가-퟿]+|\\p{N}+",
    "poro": r" ?[^(\s|.,!?…。，、।۔،)]+",
    "minerva": r"\s?\p{L}+|\s?\p{N}+|\s?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    "chameleon": r"<sentinel:[0-9]+>|(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z|([\t\n]|    |  )|\p{N}|[\p{P}!-/:-@\[-`{-~]|\p{L}+",
    "viking": r" ?[^(\s|.,!?…。，、।۔،)]+|\p{N}",
    "seed-oss": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "look-behind": r"(?<=\p{L})\p{N}+|(?<!\s)\p{P}|(?<=[a-z])(?=[A-Z])",
    "anchors": r"^\s+|\s+$|^\p{L}|\p{L}$|\A\p{P}|\p{P}\z|\b\d+\b|\B\p{M}",
    "lazy": r"\p{L}+?\p{M}|.*?\n|\p{L}{2,4}?|'.{2}?",
    "groups": r"(?:ab|a)(?:c|bcd)|((?:\p{L}\p{M}*)+)|(?>\d+)\.|(\s\S)*x",
    "empty": r"\p{M}*",
}
REPLACES = [
    ({"String": " "}, "▁"), ({"String": "''"}, '"'), ({"String": "a"}, ""), ({"String": ""}, ""), ({"Regex": r" {2,}"}, " "),
    ({"Regex": r"\s+"}, " "), ({"Regex": r"\p{M}*"}, ""), ({"Regex": r"[\p{P}\p{S}]"}, " $1 "),
    ({"Regex": r"\n"}, "\r\n"), ({"Regex": r"^\s+|\s+$"}, ""), ({"Regex": r"(?<!\n)\n(?!\n)"}, " "),
]  # fmt: skip
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def split(pattern: dict[str, str], behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def simple_pre_tokenizers() -> dict[str, dict[str, Any]]:
    parts: dict[str, dict[str, Any]] = {name: {"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")}
    for prefix in (False, True):
        for regex in (False, True):
            parts[f"ByteLevel-{prefix}-{regex}"] = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
    for scheme in ("always", "first", "never"):
        for cuts in (False, True):
            parts[f"Metaspace-{scheme}-{cuts}"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cuts}
    for behavior in BEHAVIORS:
        parts[f"Punctuation-{behavior}"] = {"type": "Punctuation", "behavior": behavior}
        for invert in (False, True):
            parts[f"Split-{behavior}-{invert}"] = split({"Regex": r"\s+|\p{P}"}, behavior, invert)
            parts[f"Split-empty-{behavior}-{invert}"] = split({"Regex": r"\p{M}*"}, behavior, invert)
            parts[f"Split-string-{behavior}-{invert}"] = split({"String": " "}, behavior, invert)
    parts["Split-long-string"] = split({"String": "'s"}, "MergedWithPrevious")
    parts["Split-empty-string"] = split({"String": ""})
    parts["Digits"] = {"type": "Digits", "individual_digits": False}
    parts["Digits-individual"] = {"type": "Digits", "individual_digits": True}
    parts["CharDelimiterSplit"] = {"type": "CharDelimiterSplit", "delimiter": "-"}
    parts["FixedLength"] = {"type": "FixedLength", "length": 3}
    first = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    parts["Sequence-first"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, first]}
    parts["Sequence-bert-digits"] = {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, {"type": "Digits", "individual_digits": True}]}
    parts["Sequence-none"] = {"type": "Sequence", "pretokenizers": []}
    for name, regex in SPLIT_REGEXES.items():
        parts[f"regex-{name}"] = split({"Regex": regex})
    return parts


def simple_normalizers() -> dict[str, dict[str, Any]]:
    names = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")
    parts: dict[str, dict[str, Any]] = {name: {"type": name} for name in names}
    for left in (False, True):
        for right in (False, True):
            parts[f"Strip-{left}-{right}"] = {"type": "Strip", "strip_left": left, "strip_right": right}
    for options in range(24):
        parts[f"Bert-{options}"] = {
            "type": "BertNormalizer",
            "clean_text": bool(options & 1),
            "handle_chinese_chars": bool(options & 2),
            "lowercase": bool(options & 4),
            "strip_accents": [None, False, True][options // 8],
        }
    parts["Prepend"] = {"type": "Prepend", "prepend": "▁"}
    for number, (pattern, content) in enumerate(REPLACES):
        parts[f"Replace-{number}"] = {"type": "Replace", "pattern": pattern, "content": content}
    parts["Sequence"] = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}
    return parts


def shared_vocabularies() -> list[Path]:
    folder = Path(os.environ.get("LMEMO_TOKENIZERS", ROOT.parent / "shared" / "tokenizers"))
    return sorted(folder.glob("*/tokenizer.json.gz"))


@pytest.mark.parametrize("name", simple_normalizers())
def test_a_normalizer_agrees(name: str) -> None:
    compare_normalizer(simple_normalizers()[name], nasty_texts(COUNT))
    compare_starts(simple_normalizers()[name], nasty_texts(COUNT // 4, seed=4))


@pytest.mark.parametrize("name", simple_pre_tokenizers())
def test_a_pre_tokenizer_agrees(name: str) -> None:
    compare_pre_tokenizer(simple_pre_tokenizers()[name], nasty_texts(COUNT))


@pytest.mark.parametrize("path", shared_vocabularies(), ids=lambda path: path.parent.name)
def test_the_parts_of_a_real_vocabulary_agree(path: Path) -> None:
    with gzip.open(path) as file:
        parts = json.load(file)
    if parts.get("normalizer"):
        compare_normalizer(parts["normalizer"], nasty_texts(COUNT, seed=2))
        compare_starts(parts["normalizer"], nasty_texts(COUNT // 4, seed=4))
    if parts.get("pre_tokenizer"):
        compare_pre_tokenizer(parts["pre_tokenizer"], nasty_texts(COUNT, seed=3))
