"""The build tree, for tests that install from it: one at a time, because installing writes there."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LMEMO_BUILD_DIR", ROOT / "build/dev"))


@contextmanager
def locked_build() -> Iterator[Path]:
    """Holds the lock of ./dev, so that neither a build nor another test works in the tree meanwhile."""
    with open(ROOT / "build/.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield BUILD


def run(*words: object, **options: Any) -> str:
    """What the command prints; fails with all it said."""
    # The tools of the virtual environment are found, whoever starts the test.
    options.setdefault("env", {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]})
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return str(ran.stdout)
