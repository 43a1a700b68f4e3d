"""The installed package: light to import, typed, one version everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "pyarrow", "torch", "transformers", "datasets", "tokenizers", "ray", "pandas")

IMPORT = f"""
import sys, time
start = time.process_time()
import lmemo
took = time.process_time() - start
print(took, *(name for name in {HEAVY!r} if name in sys.modules))
"""


def test_import_is_light() -> None:
    runs = []
    for _ in range(5):  # CPU time, the best of five: what is asked is the cost of the import, not of a busy machine.
        result = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
        seconds, *loaded = result.stdout.split()
        assert not loaded, f"import lmemo loads {loaded}"
        runs.append(float(seconds))
    assert min(runs) < 0.050, f"import lmemo takes {min(runs) * 1000:.0f} ms"


def test_one_version_everywhere() -> None:
    import lmemo

    match = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert match
    assert lmemo.__version__ == match.group(1) == metadata.version("lmemo")


def test_types_hold() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "python/lmemo", "python/lmemo_command"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
