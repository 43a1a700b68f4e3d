"""The tutorial is run as it stands: every command and every script of docs/tutorial.md, in order, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    variables = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EXAMPLES": str(ROOT / "examples"),
        "LMEMO_STORE": str(tmp_path / "store"),
        "HF_HUB_OFFLINE": "1",
    }
    outputs = []
    for language, block in blocks:
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block)
            continue
        command = ["bash", "-euc", block] if language == "sh" else [sys.executable, "-c", block]
        ran = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"
        outputs.append(ran.stdout)
    told = "\n".join(outputs)
    assert [int(step) for step in re.findall(r"^step (\d+),", told, flags=re.MULTILINE)] == [10, 20, 30]
    rows = [int(rows) for rows in re.findall(r"of (\d+) rows", told)]
    assert rows[0] == rows[1] < rows[2], "the set grew before the third run"
    assert "DatasetDict" in told
    assert (tmp_path / "report.html").stat().st_size > 5000
