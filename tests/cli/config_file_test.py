"""The settings reader against Python's tomllib: what lmemo accepts means the same as in TOML."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from lmemo_process import Lmemo, programs  # noqa: E402

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

PIECES = st.sampled_from(
    ["store", "color", "limits", "x", "=", " = ", ".", '"', "'", '"a"', "'a\\b'", '"\\u00e9"', '"\\n"', "\\", "#", "# é\n",
     "\n", "\r\n", "\t", " ", "[", "]", "[limits]", "[[limits]]", '"odd key"', '"""', "1", "0x1f", "1_0", "1.5", "-", "+1",
     "1e3", "true", "inf", "1979-05-27", "{}", ",", "ä", "é = ", 'limits.a = "1GiB"\n', "limits.b = 10\n", 'store = "x"\n']
)  # fmt: skip


def by_tomllib(text: str) -> dict[str, object] | None:
    def flat(table: dict[str, object], prefix: str = "") -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in table.items():
            found |= flat(value, prefix + key + ".") if isinstance(value, dict) else {prefix + key: value}
        return found

    try:
        return flat(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return None


def by_lmemo(lmemo: Lmemo, text: str) -> dict[str, str] | None:
    file = lmemo.directory / "some.toml"
    file.write_bytes(text.encode())
    ran = lmemo.run("config", "--json", "--config", str(file))
    if ran.returncode != 0:
        assert ran.returncode == 2
        assert "some.toml" in ran.stderr
        return None
    found = json.loads(ran.stdout)["settings"]
    return {setting["key"]: setting["value"] for setting in found if "some.toml" in setting["origin"]}


@pytest.fixture
def lmemo(tmp_path: Path) -> Lmemo:
    return Lmemo(programs()[0], tmp_path)


same_directory_is_fine = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_directory_is_fine
@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_whatever_is_accepted_means_the_same_in_toml(lmemo: Lmemo, text: str) -> None:
    ours = by_lmemo(lmemo, text)
    if ours is None:
        return
    theirs = by_tomllib(text)
    assert theirs is not None, "lmemo accepts what is not TOML"
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if key != "store":  # Its path is made absolute.
            assert ours[key] == str(value)


@same_directory_is_fine
@given(name=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20), size=st.integers(0, 2**63 - 1))
def test_any_kind_can_have_a_limit(lmemo: Lmemo, name: str, size: int) -> None:
    key = json.dumps(name, ensure_ascii=size % 2 == 0) if name.isascii() else json.dumps(name, ensure_ascii=False)
    assert by_lmemo(lmemo, f"[limits]\n{key} = {size}\n") == {f"limits.{name}": str(size)}
