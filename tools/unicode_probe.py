"""What HuggingFace `tokenizers` believes about every code point, found by asking its own objects.

HF uses several Unicode versions at once (regex, normal forms, BERT classes, case), so no published table is right for
all of them. `tools/make_unicode_tables.py` writes the answers down as C++; `python/tests/unicode_tables_test.py` asks
again and compares. Nothing here reads Python's own Unicode data, except to name combining classes.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable, Iterable

from tokenizers import Regex, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL_TEXT = "".join(map(chr, CODE_POINTS))

CATEGORIES = (
    "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
)
REGEX_SCRIPTS = (
    "Han Hiragana Katakana Hangul Bopomofo Latin Greek Cyrillic Armenian Hebrew Arabic Devanagari Bengali Tamil "
    "Thai Lao Tibetan Myanmar Georgian Ethiopic Khmer Mongolian Common Inherited"
).split()


def matched_by(pattern: str) -> set[int]:
    """The code points that the split regex engine matches with a pattern of one character."""
    split = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed")
    matched: set[int] = set()
    step = 1 << 16
    for start in range(0, len(ALL_TEXT), step):
        text = ALL_TEXT[start : start + step]
        matched.update(range(start, start + len(text)))
        for _, (begin, end) in split.pre_tokenize_str(text):
            matched.difference_update(range(start + begin, start + end))
    return {CODE_POINTS[at] for at in matched}


def pieces_of(pre_tokenizer: pre_tokenizers.PreTokenizer, text: str) -> list[str]:
    return [piece for piece, _ in pre_tokenizer.pre_tokenize_str(text)]


def where(holds: Callable[[str], bool]) -> set[int]:
    return {c for c in CODE_POINTS if holds(chr(c))}


def categories() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in CATEGORIES:
        if name in ("Cn", "Cs"):
            continue
        for c in matched_by(rf"\p{{{name}}}"):
            assert c not in found, f"U+{c:04X} is {found[c]} and {name}"
            found[c] = name
    return found


def regex_scripts() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in REGEX_SCRIPTS:
        for c in matched_by(rf"\p{{{name}}}"):
            assert c not in found, f"U+{c:04X} is {found[c]} and {name}"
            found[c] = name
    return found


def class_flags() -> dict[str, set[int]]:
    """Classes of single characters, by the name of their flag in src/tokenizer/unicode/properties.h."""
    flags = {"regex_space": matched_by(r"\s"), "regex_word": matched_by(r"\w")}

    whitespace = pre_tokenizers.Whitespace()
    flags["word"], flags["word_space"] = set(), set()
    for c in CODE_POINTS:
        pieces = pieces_of(whitespace, f"a{chr(c)}!")
        if pieces == [f"a{chr(c)}", "!"]:
            flags["word"].add(c)
        elif pieces == ["a", "!"]:
            flags["word_space"].add(c)
        else:
            assert pieces == ["a", f"{chr(c)}!"], hex(c)

    whitespace_split = pre_tokenizers.WhitespaceSplit()
    flags["space"] = where(lambda c: pieces_of(whitespace_split, f"a{c}b") == ["a", "b"])
    digits = pre_tokenizers.Digits(individual_digits=False)
    flags["numeric"] = where(lambda c: len(pieces_of(digits, f"a{c}")) == 2)
    punctuation = pre_tokenizers.Punctuation("isolated")
    flags["punctuation"] = where(lambda c: len(pieces_of(punctuation, f"a{c}")) == 2)

    clean = normalizers.BertNormalizer(True, False, False, False)
    cleaned = {c: clean.normalize_str(f"a{chr(c)}b")[1:-1] for c in CODE_POINTS}
    flags["bert_removed"] = {c for c, text in cleaned.items() if text == ""}
    flags["bert_blank"] = {c for c, text in cleaned.items() if text == " "}
    chinese = normalizers.BertNormalizer(False, True, False, False)
    flags["bert_chinese"] = where(lambda c: chinese.normalize_str(c) == f" {c} ")
    accents = normalizers.BertNormalizer(False, False, True, False)
    flags["bert_accent"] = where(lambda c: accents.normalize_str(c) == "")
    strip_accents = normalizers.StripAccents()
    flags["accent"] = where(lambda c: strip_accents.normalize_str(c) == "")
    nmt = normalizers.Nmt()
    nmted = {c: nmt.normalize_str(f"a{chr(c)}b")[1:-1] for c in CODE_POINTS}
    flags["nmt_removed"] = {c for c, text in nmted.items() if text == ""}
    flags["nmt_blank"] = {c for c, text in nmted.items() if text == " "}
    return flags


def mapped_by(normalizer: normalizers.Normalizer) -> dict[int, str]:
    """The code points that a normalizer changes, each on its own."""
    return {c: text for c in CODE_POINTS if (text := normalizer.normalize_str(chr(c))) != chr(c)}


# Normal forms ---------------------------------------------------------------------------------------------------


def is_swapped(first: str, second: str) -> bool:
    return normalizers.NFD().normalize_str(first + second) == second + first and first != second


def combining_classes(canonical: dict[int, str]) -> dict[int, int]:
    """Canonical combining classes: from the order in which NFD puts two marks. Python's numbers serve as names only."""
    low, high = "\u0334", "\u0345"  # Classes 1 and 240.
    marks = [
        c
        for c in CODE_POINTS
        if c not in canonical and (chr(c) in (low, high) or is_swapped(chr(c), low) or is_swapped(high, chr(c)))
    ]
    named: dict[int, str] = {}
    for c in marks:
        if number := unicodedata.combining(chr(c)):
            named.setdefault(number, chr(c))
    classes: dict[int, int] = {}
    for c in marks:
        same = [n for n, rep in named.items() if not is_swapped(chr(c), rep) and not is_swapped(rep, chr(c))]
        assert len(same) == 1, f"U+{c:04X} orders like {same}"
        classes[c] = same[0]
    return classes


def composition_pairs(canonical: dict[int, str]) -> dict[tuple[str, str], int]:
    nfc = normalizers.NFC()
    pairs: dict[tuple[str, str], int] = {}
    for c, parts in canonical.items():
        if 0xAC00 <= c <= 0xD7A3 or nfc.normalize_str(chr(c)) != chr(c):
            continue  # Hangul is arithmetic; an excluded one is never composed.
        first = nfc.normalize_str(parts[:-1])
        assert len(first) == 1 and nfc.normalize_str(first + parts[-1]) == chr(c), hex(c)
        pairs[first, parts[-1]] = c
    return pairs


# Grapheme clusters, as far as Precompiled shows them ----------------------------------------------------------------


def charsmap_of_first_bytes(first_bytes: Iterable[int], replacement: str) -> bytes:
    """A sentencepiece charsmap (a darts-clone double array) whose keys are single bytes. The shortest key that a
    cluster begins with decides for the whole cluster, so this replaces clusters by how they begin."""
    units = [0xFF] * 1024
    units[0] = 256 << 10  # The root's children lie at 256 ^ byte.
    for byte in first_bytes:
        units[256 ^ byte] = ((256 ^ byte ^ 512) << 10) | 0x100 | byte  # Has a value, and it lies at 512.
    units[512] = 0x80000000  # The value: offset 0 into the replacements.
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + replacement.encode() + b"\0"


def grapheme_classes() -> dict[int, str]:
    """Classes of grapheme cluster boundaries. Only clusters under six bytes show, and only what they show is told
    apart: a class says `joins` for Extend and SpacingMark alike, and there are no regional indicators (4 bytes)."""
    prepend, copyright_sign, joiner = "\u0600", "\u00a9", "\u200d"
    probe = normalizers.Precompiled(charsmap_of_first_bytes(range(1, 256), "X"))

    def joined(text: str) -> bool:  # A cluster under six bytes becomes one X.
        return len(probe.normalize_str(text)) == 1

    def extends(cluster: str, c: str) -> bool:  # A cluster that grows to six bytes or more falls apart into characters.
        return len(probe.normalize_str(cluster + c)) == len(cluster) + 1

    classes: dict[int, str] = {0x0D: "cr", 0x0A: "lf", 0x200D: "zwj"}
    assert joined("\r\n") and joined("a" + joiner) and joined(copyright_sign + joiner) and joined(prepend + "\u1100")
    for c in CODE_POINTS:
        char = chr(c)
        size = len(char.encode())
        if c in classes:
            continue
        if joined("a" + char):
            classes[c] = "joins"
        elif size < 4 and not joined(prepend + char):
            classes[c] = "control"
        elif joined(char + "b"):
            classes[c] = "prepend"
        elif extends(copyright_sign + joiner, char):
            classes[c] = "pictograph"
        else:
            before = tuple(extends(prepend + jamo, char) for jamo in "\u1100\u1161\u11a8")
            if before == (True, False, False):
                assert size == 3, "what may stand behind a longer one does not show"
                behind = tuple(extends(prepend + char, jamo) for jamo in "\u1100\u1161\u11a8")
                classes[c] = HANGUL_BY_WHAT_FOLLOWS[behind]
            elif any(before):
                classes[c] = HANGUL_BY_WHAT_PRECEDES[before]
    return classes


# Which of L, V, T may stand before such a character, and which behind, in one cluster.
HANGUL_BY_WHAT_PRECEDES = {(True, True, False): "hangul_v", (False, True, True): "hangul_t"}
HANGUL_BY_WHAT_FOLLOWS = {
    (True, True, False): "hangul_l",
    (False, True, True): "hangul_lv",
    (False, False, True): "hangul_lvt",
}


# Scripts of the UnicodeScripts pre-tokenizer --------------------------------------------------------------------------


def script_classes() -> dict[int, int]:
    """A number per script; 0 is `Any`, which never cuts."""
    scripts = pre_tokenizers.UnicodeScripts()

    def is_one(text: str) -> bool:
        return len(pieces_of(scripts, text)) == 1

    classes: dict[int, int] = {}
    representatives: list[str] = []
    last = -1
    for c in CODE_POINTS:
        char = chr(c)
        if is_one(f"a{char}a") and is_one(f"\u0416{char}\u0416"):
            classes[c] = 0
            continue
        if last < 0 or not is_one(representatives[last] + char):
            last = next((at for at, rep in enumerate(representatives) if is_one(rep + char)), -1)
            if last < 0:
                representatives.append(char)
                last = len(representatives) - 1
        classes[c] = last + 1
    return classes


def case_partners() -> dict[int, str]:
    """The non-ASCII characters that (?i:x) matches for an ASCII letter x."""
    partners: dict[int, str] = {}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        for c in matched_by(f"(?i:{letter})"):
            if c > 0x7F:
                partners[c] = letter
            else:
                assert chr(c) in (letter, letter.upper())
    return partners
