"""Reads every #include and names each arrow that points up.

The table is the one of the style guide: which room may use which. include/lmemo/ is the public contract, open to
every room, and itself made of the standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# room: the rooms it may use.
MAY_USE: dict[str, set[str]] = {
    "base": set(),
    "codec": {"base"},
    "stats": {"base"},
    "store": {"codec", "stats", "base"},
    "tokenizer": {"base"},
    "sources": {"codec", "base"},
    "packing": {"base"},
    "faces": {"sources", "tokenizer", "packing", "store", "codec", "stats", "base"},
    "cli": {"faces", "stats", "base"},
    "python": {"cli", "faces", "stats", "base"},  # cli: the console script runs the same command line.
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".h", ".hpp", ".inc", ".c", ".cc", ".cpp"}


def violations(root: Path) -> list[str]:
    """Every breach of the table in the tree at `root`, as sentences."""
    found = []
    for source in source_files(root):
        here = source.relative_to(root)
        room = room_of(here)
        if room is None:
            found.append(f"{here}: lies loose in src/, it wants a room")
            continue
        if room != "lmemo" and room not in MAY_USE:
            found.append(f"{here}: '{room}' is not a room (add it to the table, or move the file)")
            continue
        text = source.read_text(encoding="utf-8", errors="replace")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            complaint = complaint_about(root, source, room, match.group(1), match.group(2))
            if complaint:
                found.append(f"{here}:{line}: {complaint}")
    return found


def source_files(root: Path) -> list[Path]:
    folders = [root / "include", root / "src", root / "python" / "src"]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SOURCES)


def room_of(path: Path) -> str | None:
    """The room of a file given relative to the root; None for one that lies loose in src/."""
    match path.parts:
        case ("include", "lmemo", _, *_):
            return "lmemo"
        case ("python", "src", *_):
            return "python"
        case ("src", room, _, *_):
            return room
    return None


def complaint_about(root: Path, source: Path, room: str, bracket: str, name: str) -> str | None:
    target = target_of(root, source, name)
    if target is None:  # A system header.
        is_standard = bracket == "<" and "/" not in name and "." not in name
        if room == "lmemo" and not is_standard:
            return f"the public contract includes {name}; it may use the standard library only"
        return None
    if target.parts[0] in ("tests", "bench", "fuzz"):
        return f"{room} includes {name}, which belongs to {target.parts[0]}/"
    if ".." in Path(name).parts:
        return f"{name}: write the path from src/"
    neighbour = room_of(target)
    if neighbour == "lmemo":
        return None
    if room == "lmemo":
        return f"the public contract includes {name}; it may use the standard library only"
    if room == neighbour:
        return complaint_about_faces(source.relative_to(root), target) if room == "faces" else None
    if neighbour not in MAY_USE[room]:
        allowed = ", ".join(sorted(MAY_USE[room])) or "no other room"
        return f"{room} includes {name}: an arrow that points up ({room} may use: {allowed})"
    return None


def complaint_about_faces(source: Path, target: Path) -> str | None:
    """Faces are unaware of one another; files directly in src/faces/ are open to all of them."""
    if len(target.parts) > 3 and len(source.parts) > 3 and source.parts[2] != target.parts[2]:
        return f"face {source.parts[2]} includes face {target.parts[2]}; faces are unaware of one another"
    return None


def target_of(root: Path, source: Path, name: str) -> Path | None:
    """What an #include means, relative to the root; None for a header that is not ours."""
    first = Path(name).parts[0]
    if first in MAY_USE and first != "python" and len(Path(name).parts) > 1:
        return Path("src") / name
    if first == "lmemo":
        return Path("include") / name
    for folder in (source.parent, root / "src", root / "tests", root):
        path = (folder / name).resolve()
        if path.is_file() and path.is_relative_to(root.resolve()):
            return path.relative_to(root.resolve())
    return None


def rooms_in_cmake(text: str) -> dict[str, set[str]]:
    rooms = {}
    for name, rest in re.findall(r"^lmemo_room\((\w+)([^)]*)\)", text, re.MULTILINE):
        uses = re.search(r"USES((?:\s+[a-z]+)+)", rest)
        rooms[name] = set(uses.group(1).split()) if uses else set()
    return rooms


def test_every_arrow_points_down() -> None:
    assert source_files(ROOT), "no sources were found: this test looks in the wrong place"
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_the_build_has_the_same_table() -> None:
    table = {room: uses for room, uses in MAY_USE.items() if room != "python"}
    assert rooms_in_cmake((ROOT / "CMakeLists.txt").read_text()) == table


def test_the_table_has_no_cycle() -> None:
    settled: set[str] = set()
    while len(settled) < len(MAY_USE):
        ready = {room for room, uses in MAY_USE.items() if uses <= settled} - settled
        assert ready, f"a cycle among {set(MAY_USE) - settled}"
        settled |= ready


# ------------------------------------------------------------------------------- the test tested, on made-up trees

GOOD = {
    "include/lmemo/store.h": '#include "lmemo/key.h"\n#include <vector>\n#include <cstdint>\n',
    "include/lmemo/key.h": "#include <string>\n",
    "src/base/files.h": '#pragma once\n#include "lmemo/key.h"\n#include <unistd.h>\n',
    "src/store/segment.cpp": '#include "store/segment.h"\n#include "codec/zstd.h"\n#include <zstd.h>\n',
    "src/store/segment.h": '// #include "faces/sections/sections.h"\n#include "base/files.h"\n',
    "src/faces/sections/sections.cpp": '#include "store/segment.h"\n#include "faces/sections/words.h"\n',
    "src/cli/main/main.cpp": '#include "faces/sections/sections.h"\n',
    "python/src/module.cpp": '#include <nanobind/nanobind.h>\n#include "casters.h"\n#include "lmemo/store.h"\n',
    "python/src/casters.h": '#include "base/files.h"\n',
    "tests/support/temp.h": "",
}


def tree(folder: Path, changes: dict[str, str]) -> Path:
    for name, text in {**GOOD, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_tree_that_keeps_the_rules_has_no_violation(tmp_path: Path) -> None:
    assert violations(tree(tmp_path, {})) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("src/base/up.cpp", '#include "store/segment.h"\n', "base includes store/segment.h: an arrow that points up"),
        ("src/base/up.cpp", "#include <store/segment.h>\n", "an arrow that points up"),
        ("src/base/up.cpp", '  #  include "store/segment.h"\n', "an arrow that points up"),
        ("src/stats/side.cpp", '\n\n#include "codec/zstd.h"\n', "src/stats/side.cpp:3: stats includes codec/zstd.h"),
        ("src/cli/deep.cpp", '#include "store/segment.h"\n', "cli may use: base, faces, stats"),
        ("src/codec/sly.cpp", '#include "../store/segment.h"\n', "write the path from src/"),
        ("src/codec/sly.cpp", '#include "support/temp.h"\n', "belongs to tests/"),
        ("python/src/deep.cpp", '#include "store/segment.h"\n', "python includes store/segment.h"),
        ("include/lmemo/fat.h", "#include <zstd.h>\n", "standard library only"),
        ("include/lmemo/fat.h", '#include "base/files.h"\n', "standard library only"),
        ("src/faces/chunks/nosy.cpp", '#include "faces/sections/words.h"\n', "faces are unaware of one another"),
        ("src/loose.cpp", "", "src/loose.cpp: lies loose in src/"),
        ("src/utils/junk.cpp", "", "'utils' is not a room"),
    ],
)
def test_a_violation_is_named(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    found = violations(tree(tmp_path, {file: text}))
    assert len(found) == 1, found
    assert found[0].startswith(file)
    assert complaint in found[0]
