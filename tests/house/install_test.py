"""What `cmake --install` leaves is enough for a stranger's program, for man and for the shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from build_tree import ROOT, locked_build, run  # noqa: E402


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("installed")
    with locked_build() as build:
        for component in ("development", "command"):
            run("cmake", "--install", build, "--prefix", prefix, "--component", component)
    return prefix


def test_a_strangers_program_builds_and_runs(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "tests/house/consumer", source)
    run("cmake", "-S", source, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    consumer = tmp_path / "build/consumer"
    assert run(consumer, tmp_path / "store").endswith(": computed, no tokenizer\n")
    assert run(consumer, tmp_path / "store").endswith(": found, no tokenizer\n")


def test_the_command_runs_from_where_it_was_put(prefix: Path, tmp_path: Path) -> None:
    program = prefix / "bin/lmemo"
    assert run(program, "--version").startswith("lmemo ")
    assert "cold" in run(program, "demo", env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)})


def test_the_manual_page_has_every_command_and_no_mistake(prefix: Path) -> None:
    page = (prefix / "share/man/man1/lmemo.1").read_text()
    assert page.startswith(".TH LMEMO 1")
    for command in ("lmemo show", "lmemo config get", "lmemo forward trace"):
        assert f".SS {command}" in page
    if groff := shutil.which("groff"):
        checked = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8", prefix / "share/man/man1/lmemo.1"], capture_output=True, text=True)
        assert checked.stderr == ""


@pytest.mark.parametrize(
    "file",
    ["bash-completion/completions/lmemo", "zsh/site-functions/_lmemo", "fish/vendor_completions.d/lmemo.fish"],
)
def test_shells_find_their_completions(prefix: Path, file: str) -> None:
    assert "explain" in (prefix / "share" / file).read_text()
