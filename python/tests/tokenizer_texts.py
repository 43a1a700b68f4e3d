"""Texts for the parity tests: prose in many scripts, sources, and inputs made to be nasty. Always the same ones."""

from __future__ import annotations

import functools
import os
import random
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROSE = [
    "The quick brown fox jumps over the lazy dog; it's 9 o'clock, and they'll have gone 12,345.67 miles.",
    "Die Straße führt über die Brücke – „größer“ als gedacht, für 1.234,50 € im März.",
    "L'œuvre d'été n'a pas été jugée naïve : « ça va ? » demanda-t-il à l'hôtel.",
    "El niño comió piñas en la montaña; ¿cuánto cuesta? ¡Diez mil!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. 2024 год — №5.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία· τί ἐστιν ὁ ἄνθρωπος; ΟΔΟΣ ὀδός.",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ١٢٣٤",
    "דג סקרן שט לו בים זך אך לפתע פגש חבורה נחמדה שצצה כך. שָׁלוֹם עֲלֵיכֶם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "視野無限廣,窗外有藍天。我们的目标是:在2024年前完成第3个项目!(测试)",
    "いろはにほへと ちりぬるを。カタカナとひらがな、漢字も12個あります。「はい」",
    "다람쥐 헌 쳇바퀴에 타고파. 한국어 문장은 띄어쓰기가 중요합니다 123.",
    "აღმოსავლეთ საქართველო; Հայերեն լեզու։ አማርኛ ቋንቋ ፩፪፫ ไทย ລາວ မြန်မာ ភាសាខ្មែរ",
    "தமிழ் மொழி, తెలుగు భాష, ಕನ್ನಡ ಭಾಷೆ, മലയാളം, বাংলা ভাষা, ગુજરાતી, ਪੰਜਾਬੀ, සිංහල",
    "Tiếng Việt có dấu: Nguyễn Thị Hằng đã đến; İstanbul'da ışık, ŞİŞLİ, ĞÜÇ.",
]

BREAKS = ["\n", "\r", "\r\n", "\n\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029"]
SPACES = [" ", "\t", "\xa0", "\u1680", "\u2000", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\u034f", "\ufe0f", "\x00", "\x7f"]
BIDI = ["\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"]
EMOJI = ["🙂", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷🇯", "1️⃣", "☃️", "©", "🧑🏿‍🚀", "❤‍🔥", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
MARKS = ["\u0301", "\u0323", "\u0308", "\u0345", "\u0327", "\u05b0", "\u064b", "\u093c", "\u0e38", "\u1dce", "\u20d0", "\u3099"]
FORMS = ["Å", "A\u030a", "\u212b", "Ω", "\u2126", "ﬁ", "ﬃ", "ſ", "ẛ̣", "K", "½", "²", "ａｂｃ１", "ｶﾞ", "가", "\u1100\u1161", "\u1100\u1161\u11a8",
         "각\u11a8", "㎏", "㍿", "…", "İ", "ı", "ß", "ẞ", "ǅ", "Σς", "ﷺ", "\u0958", "\u0f73", "𝐇𝑒𝓁𝔩𝕠", "①", "ª", "\u0344", "\u1e9b\u0323", "豈", "你"]
WORDS = ["it's", "IT'S", "don'T", "we'Ll", "'re'VE'd", "’s", "'ſ", "'\u017f", "I'M", "'S", "x''s", "0x1F", "1234567", "1,000.50", "a1b2c3", "٣٤٥", "x²y³",
         "foo_bar", "fooBarBaz", "HTTPServer", "ABCdef", "snake_case-kebab", "C++", "a->b", "==>", "...", "?!?!", "///", "\\n", "\"'`", "<>", "[]", "{}",
         "#!", "@user", "#tag", "http://a.b/c?d=e&f", "me@x.org", "<0x0A>", "<0xFF>", "▁", "▁▁a", "Ġ", "Ċ", "Âł", "##ing", "[UNK]", "<unk>", "</w>", "$A", "\\p{L}"]
ENDS = ["a", " ", "1", ".", "é", "漢", "\n", ""]


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "src").rglob("*.cpp"))[:12] + sorted((ROOT / "python").rglob("*.py"))[:8]:
        yield str(path.relative_to(ROOT)), path.read_text()[:8_000]
    yield "dev", (ROOT / "dev").read_text()


def corpus() -> Iterator[tuple[str, str]]:
    """examples/corpus, of each file a part, so that slow HuggingFace takes seconds and not minutes."""
    for number, path in enumerate(sorted((ROOT / "examples/corpus").glob("*.txt"))):
        text = path.read_text()
        start = number * 997 % max(1, len(text) - 4000)
        yield path.name, text[start : start + 4000]


@functools.cache
def boundaries() -> list[int]:
    """Code points where the category, the case or the normal form changes, and their neighbours."""
    found: set[int] = set()
    before = None
    for code_point in range(sys.maxunicode + 1):
        character = chr(code_point)
        kind = (unicodedata.category(character), unicodedata.combining(character))
        if kind != before:
            found.update((code_point - 1, code_point, code_point + 1))
        before = kind
    return [point for point in sorted(found) if 0 <= point <= sys.maxunicode and not 0xD800 <= point <= 0xDFFF]


def every_category(rng: random.Random, count: int) -> Iterator[str]:
    for point in rng.sample(boundaries(), count):
        character = chr(point)
        left, right = rng.choice(ENDS), rng.choice(ENDS)
        yield rng.choice(
            [f"{left}{character}{right}", f"{left} {character}{character} {right}", f"{left}{character}\n{right}",
             f"{character}", f" {character}{left}{character}", f"{left}'{character}{right}"]
        )


def mixes(rng: random.Random, count: int) -> Iterator[str]:
    kinds = [BREAKS, SPACES, INVISIBLE, BIDI, EMOJI, MARKS, FORMS, WORDS, WORDS, ["a", "Z", "ñ", "я", "9", "٣", "漢", "か", "한", "ก", "!", "-", "'"]]
    for _ in range(count):
        parts = [rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, 12))]
        yield rng.choice(["", "", " "]).join(parts)


def combining(rng: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        text = "".join(
            rng.choice(["a", "e", "O", "漢", "ק", "क", "ア", "\u1100\u1161", " ", "1"]) + "".join(rng.sample(MARKS, rng.randint(0, 4)))
            for _ in range(rng.randint(1, 4))
        )
        yield rng.choice([text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD"))])


def runs() -> Iterator[str]:
    for unit in ["a", " ", "\n", "\t", "1", ".", "é", "漢", "😀", "\u0301", "ab ", " a", "\r\n", " \n", "'s", "=", "\u3000", "aA", "_", "\u200d", "▁"]:
        for count in (2, 3, 4, 7, 16, 99, 100, 101, 1000):
            yield unit * count
            yield f"x{unit * count}y"


def with_special(rng: random.Random, tokens: list[str], count: int) -> Iterator[str]:
    """Special tokens glued to words and to each other, cut, nested, with all kinds of blanks around."""
    if not tokens:
        return
    around = ["", "", " ", "  ", "\n", "\t", "\xa0", "a", "é", "漢", ".", "_", "1", "\u200d", "\u0301", "Hello", "\u3000"]
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 5)):
            token = rng.choice(tokens)
            cut = rng.randint(0, len(token))
            shape = rng.random()
            if shape < 0.15:
                token = token[:cut]
            elif shape < 0.25:
                token = token[:cut] + rng.choice(tokens) + token[cut:]
            elif shape < 0.35:
                token = rng.choice([token.upper(), token.lower(), token.title(), unicodedata.normalize("NFD", token)])
            parts += [rng.choice(around), token, rng.choice(around)]
        yield "".join(parts)


def scraps(rng: random.Random, count: int) -> Iterator[str]:
    """Clauses of all scripts between scraps of ASCII, a few blocks of 64 bytes long: what begins in one ends in another."""
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(4, 30)):
            prose = rng.choice(PROSE)
            start = rng.randrange(len(prose))
            parts.append(rng.choice([prose[start : start + rng.randint(1, 30)], prose[start : start + 2], rng.choice(WORDS), rng.choice(["fI", "-", " ", "(", "\\"])]))
        yield rng.choice(["", "", " "]).join(parts)


def nasty(seed: int, special_tokens: Iterable[str] = ()) -> list[str]:
    """About 1,000 texts; LMEMO_TEST_SCALE is a percentage of most of them."""
    rng = random.Random(seed)
    scale = max(1, int(os.environ.get("LMEMO_TEST_SCALE", "100"))) / 500
    texts = ["", *BREAKS, *SPACES, *INVISIBLE, *BIDI, *EMOJI, *MARKS, *FORMS, *WORDS, *runs()]
    texts += [text[cut:] + "\n" + text[:cut] for text in PROSE for cut in (0, 1, 7)]
    texts += every_category(rng, min(int(800 * scale), len(boundaries())))
    texts += mixes(rng, int(800 * scale))
    texts += combining(rng, int(200 * scale))
    texts += scraps(rng, int(800 * scale))
    texts += with_special(rng, list(special_tokens), int(300 * scale))
    return texts
