"""The stub in the repository is the one that the built extension gives."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_stub_is_the_one_of_the_built_extension() -> None:
    built = Path(os.environ.get("LMEMO_BUILD_DIR", ROOT / "build/dev")) / "python/_core.pyi"
    kept = ROOT / "python/lmemo/_core.pyi"
    assert kept.read_text() == built.read_text(), "run ./dev build (it renews the stub) and commit the result"
