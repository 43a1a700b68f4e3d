"""Writes src/tokenizer/unicode/*_table.cpp from what HuggingFace `tokenizers` says about every code point.

    python tools/make_unicode_tables.py        # needs `pip install tokenizers==0.23.3`; takes a few minutes

The tables are the probed answers and nothing else (tools/unicode_probe.py). Run it again for a new HF release and read
the difference: python/tests/unicode_tables_test.py fails until the committed tables agree with the installed release.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import tokenizers
from tokenizers import normalizers

import unicode_probe as probe

FOLDER = Path(__file__).resolve().parent.parent / "src" / "tokenizer" / "unicode"
# In the order of the enumerators in src/tokenizer/unicode/properties.h.
FLAGS = (
    "regex_space regex_word word word_space space numeric punctuation bert_removed bert_blank bert_chinese "
    "bert_accent accent nmt_removed nmt_blank"
).split()
GRAPHEMES = "other cr lf control joins zwj prepend pictograph hangul_l hangul_v hangul_t hangul_lv hangul_lvt".split()


def head(what: str, *includes: str) -> str:
    lines = [f"// {what}", "// Written by tools/make_unicode_tables.py from HuggingFace tokenizers " + tokenizers.__version__]
    lines += ["// by asking it about every code point. Do not edit.", "// clang-format off"]
    lines += [f'#include "tokenizer/unicode/{name}"' for name in includes]
    return "\n".join(lines) + "\n\nnamespace lmemo::tokenizer {\n\n"


def rows(items: Iterable[str], width: int = 118) -> str:
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) + 1 > width:
            lines.append(line)
            line = ""
        line += item + ","
    return "\n".join([*lines, line])


def array(kind: str, name: str, items: list[str]) -> str:
    return f"const {kind} {name}_data[] = {{\n{rows(items)}\n}};\nconst std::span<const {kind}> {name}({name}_data);\n\n"


def properties_table() -> str:
    canonical = probe.mapped_by(normalizers.NFD())
    categories = probe.categories()
    marks = probe.combining_classes(canonical)
    graphemes = probe.grapheme_classes()
    regex_scripts = probe.regex_scripts()
    scripts = probe.script_classes()
    flags = probe.class_flags()
    records: dict[tuple[int, ...], int] = {}
    runs: list[str] = []
    last = -1
    for c in probe.CODE_POINTS:
        record = (
            probe.CATEGORIES.index(categories.get(c, "Cn")),
            marks.get(c, 0),
            GRAPHEMES.index(graphemes.get(c, "other")),
            probe.REGEX_SCRIPTS.index(regex_scripts[c]) + 1 if c in regex_scripts else 0,
            scripts[c],
            sum(1 << bit for bit, name in enumerate(FLAGS) if c in flags[name]),
        )
        number = records.setdefault(record, len(records))
        if number != last:
            runs.append(f"{{0x{c:X},{number}}}")
            last = number
    text = head("What holds for each code point: records, and the runs of code points that share one.", "properties_table.h")
    text += array("CharacterProperties", "kPropertyRecords", ["{" + ",".join(map(str, r)) + "}" for r in records])
    return text + array("PropertyRun", "kPropertyRuns", runs) + "}  // namespace lmemo::tokenizer\n"


def mapping(name: str, mapped: dict[int, str]) -> str:
    pool: list[int] = []
    entries = []
    for c, text in sorted(mapped.items()):
        entries.append(f"{{0x{c:X},{len(pool)},{len(text)}}}")
        pool += map(ord, text)
    return array("char32_t", f"{name}_texts", [f"0x{c:X}" for c in pool]) + array("MappingEntry", name, entries)


def mappings_table() -> str:
    def without_hangul(mapped: dict[int, str]) -> dict[int, str]:
        return {c: text for c, text in mapped.items() if not 0xAC00 <= c <= 0xD7A3}

    canonical = probe.mapped_by(normalizers.NFD())
    compatible = {c: t for c, t in probe.mapped_by(normalizers.NFKD()).items() if canonical.get(c) != t}
    pairs = sorted(probe.composition_pairs(canonical).items())
    text = head("Case and normal forms: what one code point becomes, and what two become.", "mappings_table.h")
    text += mapping("kLowercase", probe.mapped_by(normalizers.Lowercase()))
    text += mapping("kCanonical", without_hangul(canonical))
    text += "// Only where it is not the canonical one.\n"
    text += mapping("kCompatible", without_hangul(compatible))
    text += array("CompositionPair", "kCompositions", [f"{{0x{ord(a):X},0x{ord(b):X},0x{c:X}}}" for (a, b), c in pairs])
    return text + "}  // namespace lmemo::tokenizer\n"


def main() -> int:
    for name, make in (("mappings_table.cpp", mappings_table), ("properties_table.cpp", properties_table)):
        (FOLDER / name).write_text(make(), encoding="utf-8")
        print(f"{FOLDER / name}: {(FOLDER / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
