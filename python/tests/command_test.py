"""The console script: the C++ command line inside the extension, as well-behaved as a program of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lmemo

SCRIPT = Path(sys.executable).with_name("lmemo")
RUN = [sys.executable, "-m", "lmemo"]


@pytest.fixture
def filled(directory: Path) -> Path:
    with lmemo.Store(directory) as store:
        store.put_many((lmemo.Key.of("test", n=n), bytes(100)) for n in range(3))
    return directory


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *words], capture_output=True, text=True, timeout=60)


def test_the_script_is_installed_and_tells_the_version() -> None:
    for command in ([str(SCRIPT)], RUN):
        result = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert lmemo.__version__ in result.stdout


def test_exit_codes_and_streams(filled: Path) -> None:
    shown = run("show", "--json", "--store", str(filled))
    assert shown.returncode == 0 and shown.stderr == ""
    assert json.loads(shown.stdout)
    misuse = run("no-such-command")
    assert misuse.returncode == 2 and misuse.stdout == "" and "no-such-command" in misuse.stderr


def test_arguments_that_are_not_utf8(tmp_path: Path) -> None:
    odd = bytes(tmp_path) + b"/\xff"
    result = subprocess.run([*RUN, "show", "--store", odd], capture_output=True)
    assert b"Traceback" not in result.stderr


def test_output_stays_in_order_with_that_of_python() -> None:
    program = """
import sys
from lmemo.__main__ import main
sys.stdout.write("before ")
sys.argv = ["lmemo", "--version"]
code = main()
sys.stdout.write("after")
sys.exit(code)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("before ") and result.stdout.endswith("after")
    assert lmemo.__version__ in result.stdout


def test_a_broken_pipe_is_quiet() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    result = subprocess.run([*RUN, "--help"], stdout=writable, stderr=subprocess.PIPE, text=True)
    os.close(writable)
    assert result.stderr == ""
    assert result.returncode in (0, 1)


def test_ctrl_c_at_a_question_is_130(filled: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*RUN, "clear", "--store", str(filled)])
    seen = b""
    deadline = time.monotonic() + 30
    while b"?" not in seen and b"y/N" not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    time.sleep(0.1)
    os.write(terminal, b"\x03")
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                pass
    assert os.waitstatus_to_exitcode(status) == 130, seen
    assert b"Traceback" not in seen
    with lmemo.Store(filled) as store:
        assert store.stats().entries == 3


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_before_the_package_is_loaded_is_no_traceback(filled: Path, number: str) -> None:
    program = f"""
import os, signal, sys
from lmemo_command import main

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "lmemo":
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Interrupts())
sys.argv = ["lmemo", "verify", "--store", {str(filled)!r}]
sys.exit(main())
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (130, "")
    assert "interrupted" in result.stderr and "Traceback" not in result.stderr
