"""The package is typed for its users: right programs pass mypy --strict, wrong ones do not."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import lmemo

SAMPLE = Path(__file__).with_name("typing_sample.py")


def test_mypy_accepts_right_and_refuses_wrong_programs(tmp_path: Path) -> None:
    wrong = {
        number for number, line in enumerate(SAMPLE.read_text().splitlines(), 1) if line.endswith("  # wrong")
    }
    assert len(wrong) == 6
    # What lmemo only loads when asked is read for half a minute, and has no say here.
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*,transformers.*,lm_eval.*]\nfollow_imports = skip\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path),
        str(SAMPLE),
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    complaints = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert {int(line.split(":")[1]) for line in complaints} == wrong, result.stdout + result.stderr


def test_every_public_name_is_documented() -> None:
    for name in lmemo.__all__:
        public = getattr(lmemo, name)
        if name in ("__version__", "FieldValue"):
            continue
        assert inspect.getdoc(public), name
        assert public.__module__.startswith("lmemo"), name
        for member, value in vars(public).items() if isinstance(public, type) else ():
            if not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_classes_are_known_by_their_public_name() -> None:
    assert repr(lmemo.Key) == "<class 'lmemo.Key'>"
    assert repr(lmemo.Corruption) == "<class 'lmemo.Corruption'>"


def test_errors_are_what_python_calls_them() -> None:
    for error, base in [
        (lmemo.InvalidArgument, ValueError),
        (lmemo.IoError, OSError),
        (lmemo.NoSpace, OSError),
        (lmemo.Corruption, Exception),
        (lmemo.Incompatible, Exception),
        (lmemo.Busy, Exception),
    ]:
        assert issubclass(error, lmemo.Error) and issubclass(error, base)


def test_import_loads_nothing_heavy() -> None:
    program = "import sys, lmemo; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "numpy",
        "torch",
        "pyarrow",
        "datetime",
        "logging",
        "typing",
        "dataclasses",
        "pathlib",
        "asyncio",
    }
    assert not heavy & set(loaded) - set(sys.builtin_module_names) - plain_modules()


def plain_modules() -> set[str]:
    """What the interpreter loads without us; .pth files in site-packages may add to it."""
    program = "import sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
    )
