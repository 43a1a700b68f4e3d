"""./dev installs exactly the Debian packages that the build looks for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def package_of() -> dict[str, str]:
    """Library name to Debian package, from the table in cmake/LmemoDeps.cmake."""
    text = (ROOT / "cmake/LmemoDeps.cmake").read_text()
    return dict(re.findall(r'^\s*"(\w+)\|([a-z0-9+.-]+)\|', text, re.MULTILINE))


def libraries_in(text: str) -> set[str]:
    """The libraries that rooms and test programs name."""
    named = re.findall(r"DEPENDS((?:\s+\w+)+)\)", text) + re.findall(
        r"lmemo_use_deps\(\S+ (?:PRIVATE|PUBLIC)((?: \w+)+)\)", text
    )
    return {name for names in named for name in names.split()} - {"threads"}


def packages_in_dev(variable: str) -> set[str]:
    match = re.search(rf"{variable}=\(([^)]*)\)", (ROOT / "dev").read_text())
    assert match
    return set(match.group(1).split())


def test_dev_installs_what_the_build_looks_for() -> None:
    text = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cmake/LmemoTests.cmake").read_text()
    libraries = libraries_in(text)
    assert {"crypto", "xxhash", "doctest", "lmdb"} <= libraries
    wanted = {package_of()[name] for name in libraries}
    have = packages_in_dev("build_packages")
    assert wanted == have - {"g++", "pkg-config"}
