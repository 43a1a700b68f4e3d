"""Texts that tokenizers get wrong: made anew from a seed, the same on every machine."""

from __future__ import annotations

import random
import unicodedata
from functools import cache

_FIXED = [
    "", " ", "  ", "\n", "\r\n", "\r", "\t", "\x00", "a", "é", "e\u0301", "\u0301", "\u0301e", "\u200b", "\u200d", "\ufeff",
    "\u0085", "\u2028", "\u2029", "\u00a0", "\u3000", "\u180e", "\u1680", "\x1c\x1d\x1e\x1f", "\u200e\u200f\u202a\u202e\u2066\u2069",
    "Hello, world!", " Hello  world ", "it's IT'S it'S It'ſ don't DON'T we'll WE'LL I'm I'M you're they've he'd 'tis 's 'S 'ſ 'K",
    "'s's's", " 's", "''s", "x'll'd've", "l'été", "'\u212a", "'ss 'SS 'ß 'ﬁ 'ﬆ", "1234567890", "1 12 123 1234 12345", "٣٤٥٦", "①②③ⅷ½¾",
    "a1b2c3", "3.14159e-10", "１２３ａｂｃ", "foo_bar__baz", "CamelCaseHTTPServer", "ǅungla ǈ ǋ", "ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ", "İstanbul ıI", "ΣΑΣ σας ΟΔΟΣ",
    "STRASSE straße ẞ", "\u1e9b\u0323", "\u212b\u00c5A\u030a", "\u1100\u1161\u11a8", "각", "\uac00\u11a8", "\u1100\uac00", "\u0958", "\u2126",
    "\ufb1d\ufb2a", "\u0344", "\u0f73\u0f75\u0f81", "\u0dd9\u0dcf\u0dca", "a\u0323\u0307", "a\u0307\u0323", "q\u0307\u0323\u0327\u0334\u0345",
    "a\u0315\u0300\u05ae\u0062", "中文字符", "日本語のテキスト", "カタカナー", "한국어 텍스트", "ไทยภาษา", "हिन्दी में", "العربية ١٢٣", "עברית", "Ελληνικά", "Русский текст",
    "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷🇩", "❤️", "©\u200d®", "©\u200dx", "©\ufe0f", "\u0600a", "\u0600\u0301", "\u0600각", "\r\n\r\n", "a\r\nb", "\n\n\n a", " \n \n ",
    "a  \n  b", "   a", "a   ", "a \u00a0 b", "a\u2003\u2003b", "\t\tindent", "    if x:\n        y\n", "x = [1,2,3];\r\n// ok\r\n", "!!!???", "...", "--", " -- ",
    "/usr/bin//", "a/b\n/c", "#include <x.h>", "$100 €20 ₹5", "∑∏√∞≠", "`´^~¨", "“quotes” ‘single’ «g»", "\\n\\r", "{}[]()", "a\x00b", "\x7f\x80\x9f", "\ufffd\ufffe\uffff",
    "\U000e0001\U000e0061", "\U0010ffff\U000f0000", "\u0378\u0379", "▁", "▁▁a▁b", "a▁", "a ▁ b", "Ġ", "-", "a-b", "--a--b--", "𝒜𝓫𝟘", "𠀀𪜀𫝀", "㍿㌔", "ｶﾞｷﾞ", "\u3099か\u3099",
]


@cache
def characters_by_category() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000:
            found.setdefault(unicodedata.category(chr(c)), []).append(chr(c))
    return found


def nasty_texts(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    categories = characters_by_category()
    names = sorted(categories)
    marks = [c for name in ("Mn", "Mc", "Me") for c in categories[name]]
    blanks = list(" \t\n\r\v\f\u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\u180e\ufeff\x1c")
    special = list("'’ſKk sStTdDmMlLrRvVeE0123456789-_▁./\n\r '") + ["'s", "'LL", "'re", " ", "\r\n", "\u200d", "\ufe0f", "\u0600"]
    words = [text for text in _FIXED if text]

    def any_character() -> str:
        kind = rng.random()
        if kind < 0.35:
            return chr(rng.randrange(0x20, 0x7F))
        if kind < 0.5:
            return rng.choice(blanks)
        if kind < 0.65:
            return rng.choice(special)
        if kind < 0.75:
            return rng.choice(marks)
        if kind < 0.85:
            c = rng.randrange(0x3000)
            return chr(c)
        return rng.choice(categories[rng.choice(names)])

    def neighbours() -> str:  # Both sides of a place where the category changes.
        while True:
            c = ord(rng.choice(categories[rng.choice(names)]))
            if 1 < c < 0x10FFFE and not 0xD7FD <= c < 0xE003:
                return "".join(rng.choice(["", " ", "a", "'"]) + chr(c + d) for d in (-2, -1, 0, 1, 2))

    def run() -> str:
        return any_character() * rng.choice([2, 3, 4, 7, 30, 200])

    makers = [
        lambda: "".join(any_character() for _ in range(rng.randrange(1, 12))),
        lambda: "".join(any_character() for _ in range(rng.randrange(1, 60))),
        lambda: "".join(rng.choice("aAzé漢\u1100\u0391") + "".join(rng.choices(marks, k=rng.randrange(5))) for _ in range(6)),
        neighbours,
        lambda: "".join(run() for _ in range(rng.randrange(1, 4))),
        lambda: "".join(rng.choice(words) + rng.choice(["", " ", "\n", "'"]) for _ in range(rng.randrange(1, 6))),
        lambda: "".join(rng.choice(special + blanks) for _ in range(rng.randrange(1, 20))),
    ]
    return _FIXED + [rng.choice(makers)() for _ in range(count)]
