"""A new user with an empty home: everything works, and nothing is written but what was asked for, the store and the temporary directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lmemo
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PACKAGE = Path(lmemo.__file__).parent


class NewUser:
    """Runs programs with an environment that has hardly anything in it."""

    def __init__(self, directory: Path) -> None:
        self.home, self.work, self.temporary = directory / "home", directory / "work", directory / "tmp"
        for folder in (self.home, self.work, self.temporary):
            folder.mkdir()

    def run(self, *words: object) -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "TMPDIR": str(self.temporary), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run([sys.executable, *map(str, words)], cwd=self.work, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def lmemo(self, *words: object) -> str:
        return self.run("-m", "lmemo", *words)


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time."""
    return {
        os.path.relpath(os.path.join(place, name), folder): ((status := os.lstat(os.path.join(place, name))).st_size, status.st_mtime_ns)
        for place, _, names in os.walk(folder)
        for name in names
        if not name.endswith(".pyc")
    }


@pytest.fixture
def user(tmp_path: Path) -> NewUser:
    return NewUser(tmp_path)


def test_the_demo_leaves_one_page_and_nothing_else(user: NewUser) -> None:
    before = files_in(PACKAGE), files_in(EXAMPLES)
    user.lmemo("demo")
    assert files_in(user.home) == {} and files_in(user.work) == {}
    assert [Path(name).name for name in files_in(user.temporary)] == ["report.html"]
    assert (files_in(PACKAGE), files_in(EXAMPLES)) == before


def test_work_is_written_to_the_store_and_to_what_was_named(user: NewUser) -> None:
    tokenizer, corpus = EXAMPLES / "tokenizer", EXAMPLES / "corpus"
    with open(user.work / "train.jsonl", "w", encoding="utf-8") as lines:
        for number in range(50):
            lines.write(json.dumps({"text": f"line {number}"}) + "\n")
    before = files_in(PACKAGE), files_in(EXAMPLES)
    user.lmemo("sections", "sync", corpus, "--tokenizer", tokenizer)
    user.lmemo("chunks", "build", "train.jsonl", "--tokenizer", tokenizer, "--output", "chunks")
    user.lmemo("dataset", "build", "--tokenizer", tokenizer, "--train-file", "train.jsonl", "--output-dir", "tokens", "--no-eos")
    user.lmemo("report", "--chunks", "chunks", "-o", "report.html")
    user.run("-c", f"import lmemo; tokenizer = lmemo.Tokenizer.from_pretrained_dir({str(tokenizer)!r}); print(tokenizer.encode('a text'))")
    user.run("-c", "import lmemo; store = lmemo.Store(); store.put(lmemo.Key.of('kind', n=1), b'x'); store.close()")
    for word in ("show", "verify", "metrics", "config"):
        user.lmemo(word)
    assert {Path(name).parts[:2] for name in files_in(user.home)} == {(".cache", "lmemo")}
    assert {Path(name).parts[0] for name in files_in(user.work)} == {"train.jsonl", "chunks", "tokens", "report.html"}
    assert files_in(user.temporary) == {}
    assert (files_in(PACKAGE), files_in(EXAMPLES)) == before
