"""Stores for the tests: every test that asks for `store` runs once with a directory and once in memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lmemo

# Tests compare with HuggingFace themselves, and leave no verdicts in the user's store.
os.environ["LMEMO_TOKENIZER_CHECK"] = "never"


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lmemo.StoreBase]:
    with lmemo.Store(tmp_path / "store") if request.param == "disk" else lmemo.MemoryStore() as opened:
        yield opened


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def run_python(directory: Path) -> Callable[..., str]:
    """Runs a program in another process with `store` open on the directory, and returns what it printed."""

    def run(program: str, *, directory: Path = directory, **options: Any) -> str:
        head = "import lmemo\nkey = lambda n: lmemo.Key.of('test', n=n)\n"
        head += f"store = lmemo.Store({str(directory)!r})\n"
        result = subprocess.run(
            [sys.executable, "-c", head + program], capture_output=True, text=True, timeout=60, **options
        )
        assert result.returncode == 0, result.stderr
        return str(result.stdout)

    return run


@pytest.fixture
def in_child() -> Callable[..., Any]:
    """Runs a function in a forked child, as the user nobody if asked for, and returns what it returned."""

    def run(function: Callable[[], Any], *, as_nobody: bool = False) -> Any:
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            answer: tuple[bool, Any] = (False, "the child ended early")
            try:
                if as_nobody and os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                answer = (True, function())
            except BaseException as error:
                answer = (False, f"{type(error).__name__}: {error}")
            finally:
                os.write(writable, pickle.dumps(answer))
                os._exit(0)
        os.close(writable)
        with open(readable, "rb") as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        assert status == 0 and told, f"the child died with status {status}"
        is_fine, answer_of_child = pickle.loads(told)
        assert is_fine, answer_of_child
        return answer_of_child

    return run
