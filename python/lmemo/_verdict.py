"""Does lmemo's engine agree with HuggingFace's on this tokenizer? Asked once, and remembered.

When a tokenizer is used for the first time on a machine that has HuggingFace's `tokenizers`, a fixed set of texts goes
through both engines. The verdict is kept in the store's directory, under the tokenizer's fingerprint and the versions of
both. Where they differ, HuggingFace's engine runs from then on: slower, never wrong.

LMEMO_TOKENIZER_CHECK=never switches this off.
"""

from __future__ import annotations

import os

from lmemo._core import default_store_directory
from lmemo._core import version as _lmemo_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lmemo._core import NativeTokenizer
    from lmemo._huggingface import HuggingFaceEngine

TRAPS = [
    "", " ", "  ", "\n", "\r\n", "\r", "\t", "\x00", "a", "é", "e\u0301", "\u0301", "\u0301e", "\u200b", "\u200d", "\ufeff", "\u0085", "\u2028", "\u00a0", "\u3000",
    "\u180e", "\u1680", "\x1c\x1d\x1e\x1f", "\u200e\u200f\u202a\u202e\u2066\u2069", "Hello, world!", " Hello  world ", "Hello\nworld\n\n\n  x",
    "it's IT'S it'S It'ſ don't DON'T we'll WE'LL I'm I'M you're they've he'd 'tis 's 'S 'ſ 'K", "'s's's", "x'll'd've", "l'été", "'\u212a", "1234567890", "1 12 123 1234 12345",
    "٣٤٥٦", "①②③ⅷ½¾", "a1b2c3", "3.14159e-10", "１２３ａｂｃ", "foo_bar__baz", "CamelCaseHTTPServer", "ǅungla ǈ ǋ", "ﬀ ﬁ ﬃ ﬆ", "İstanbul ıI", "ΣΑΣ σας ΟΔΟΣ", "STRASSE straße ẞ",
    "\u1e9b\u0323", "\u212b\u00c5A\u030a", "\u1100\u1161\u11a8", "각\u11a8", "\u0958", "\u2126", "\u0344", "\u0f73\u0f75\u0f81", "a\u0323\u0307", "a\u0307\u0323",
    "q\u0307\u0323\u0327\u0334\u0345", "中文字符,测试。", "日本語のテキスト", "カタカナー", "한국어 텍스트", "ไทยภาษา", "हिन्दी में", "العربية ١٢٣", "עברית", "Ελληνικά", "Русский текст",
    "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷🇩", "❤️", "©\u200dx", "\u0600a", "\u0600각", "a\r\nb", " \n \n ", "a  \n  b", "   a", "a   ", "a \u00a0 b", "\t\tindent", "    if x:\n        y\n",
    "x = [1,2,3];\r\n// ok\r\n", "!!!???", "...", " -- ", "/usr/bin//", "a/b\n/c", "#include <x.h>", "$100 €20 ₹5", "∑∏√∞≠", "“quotes” ‘single’ «g»", "\\n\\r", "{}[]()", "a\x00b",
    "\x7f\x80\x9f", "\ufffd\ufffe\uffff", "\U000e0001\U000e0061", "\U0010ffff\U000f0000", "\u0378\u0379", "▁", "▁▁a▁b", "a ▁ b", "Ġ", "Âł", "<s>", "</s> a <s>", "<unk>", "[UNK]", "[CLS] x [SEP]",
    "<|endoftext|>", "a<|endoftext|>b", "<0x0A>", "##ing", "𝒜𝓫𝟘", "𠀀𪜀𫝀", "㍿㌔", "ｶﾞｷﾞ", "\u3099か\u3099", "a" * 300, " " * 129, "\n" * 33, "=" * 80, "ab" * 200, "漢" * 100, "é" * 101,
    "The quick brown fox jumps over the lazy dog; it's 9 o'clock, and they'll have gone 12,345.67 miles.",
    "Die Straße führt über die Brücke – „größer“ als gedacht, für 1.234,50 € im März.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. 2024 год — №5.",
    "視野無限廣,窗外有藍天。我们的目标是:在2024年前完成第3个项目!(测试)",
    "def f(x: int) -> str:\n    \"\"\"Doc.\"\"\"\n    return f\"{x!r:>10}\"  # comment\n\n\nclass A(B):\n\tpass\n",
]  # fmt: skip


def is_wanted() -> bool:
    return os.environ.get("LMEMO_TOKENIZER_CHECK", "") != "never"


def huggingface_version() -> str | None:
    """Of the installed `tokenizers`, without importing it; None if there is none."""
    import importlib.metadata

    try:
        return importlib.metadata.version("tokenizers")
    except importlib.metadata.PackageNotFoundError:
        return None


def path_of(native: NativeTokenizer, version: str) -> Path:
    name = f"{native.fingerprint}-{native.engine}-lmemo-{_lmemo_version}-tokenizers-{version}.json"
    return default_store_directory() / "tokenizers" / name


def stored(path: Path) -> str | None:
    """ "same" or "differs"; None if it is not known."""
    import json

    try:
        found = json.loads(path.read_text())["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found in ("same", "differs") else None


def store(path: Path, verdict: str, first_difference: str | None) -> None:
    """In one step, so that nobody reads half of it. A directory that cannot be written costs another look next time."""
    import json

    content = {"verdict": verdict, "texts": len(TRAPS), "first_difference": first_difference}
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(json.dumps(content) + "\n")
        scratch.replace(path)
    except OSError:
        pass


def first_difference(native: NativeTokenizer, other: HuggingFaceEngine) -> str | None:
    """The first trap on which the two differ."""

    def ids(engine: NativeTokenizer | HuggingFaceEngine, text: str, special: bool) -> list[int] | str:
        try:
            return [int(id) for id in engine.encode(text, special)]
        except BaseException as error:  # HuggingFace's panics are none of Exception's.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return "an error"

    for special in (True, False):
        for text in TRAPS:
            if ids(native, text, special) != ids(other, text, special):
                return text
    return None


def differs(native: NativeTokenizer, huggingface: Callable[[], HuggingFaceEngine]) -> bool:
    """Whether HuggingFace's engine has to run this tokenizer. Tells so the first time."""
    if not is_wanted():
        return False
    version = huggingface_version()
    if version is None:
        return False
    path = path_of(native, version)
    verdict = stored(path)
    if verdict is None:
        try:
            other = huggingface()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return False  # It cannot be asked.
        text = first_difference(native, other)
        verdict = "same" if text is None else "differs"
        store(path, verdict, text)
        if text is not None:
            import logging

            logging.getLogger("lmemo").warning(
                "tokenizer %s: lmemo's engine and tokenizers %s differ on %r; HuggingFace's engine runs it from now on "
                "(%s). Please report this.", native.fingerprint[:12], version, text, path,
            )  # fmt: skip
    return verdict == "differs"
