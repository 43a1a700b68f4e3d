"""A wheel brings the libraries it needs, and is useful in an environment that has nothing else."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from build_tree import ROOT, locked_build, run  # noqa: E402

SETTINGS = ("cmake.define.LMEMO_DEV=ON", "install.strip=false")  # Those of ./dev: nothing is compiled again.


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the repaired wheel and nothing else in it."""
    folder = tmp_path_factory.mktemp("wheel")
    with locked_build() as build:
        settings = [f"--config-settings={setting}" for setting in (f"build-dir={build}", *SETTINGS)]
        run(sys.executable, "-m", "pip", "wheel", "-q", ROOT, "--no-build-isolation", "--no-deps", "-w", folder / "raw", *settings)
    (raw,) = (folder / "raw").glob("*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "-w", folder / "ready", raw)
    (ready,) = (folder / "ready").glob("*.whl")
    assert "manylinux" in ready.name
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", ready)
    return folder / "venv"


def clean_variables(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home)}


LOADED = """
def mapped():
    return {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
before = mapped()
import lmemo
print(*sorted(mapped() - before), sep="\\n")
"""


def test_no_library_of_the_system_is_needed_but_those_of_every_linux(environment: Path, tmp_path: Path) -> None:
    loaded = run(environment / "bin/python", "-c", LOADED, env=clean_variables(tmp_path)).split()
    outside = [path for path in loaded if not path.startswith(str(environment))]
    # zlib is among those that auditwheel's manylinux policies leave to the system.
    everywhere = ("libstdc++.so", "libgcc_s.so", "libm.so", "libc.so", "libdl.so", "libpthread.so", "librt.so", "libz.so")
    lib_dynload = f"{sys.base_prefix}/lib"  # Python's own.
    strangers = [path for path in outside if not Path(path).name.startswith(everywhere) and not path.startswith(lib_dynload)]
    assert not strangers
    assert any("libcrypto" in path for path in loaded), "the test looks at the wrong process: libcrypto must be there"


def test_it_works_with_nothing_else_installed(environment: Path, tmp_path: Path) -> None:
    lmemo = environment / "bin/lmemo"
    variables = clean_variables(tmp_path)
    assert run(lmemo, "--version", env=variables).startswith("lmemo ")
    assert "cold" in run(lmemo, "demo", env=variables)
    program = (
        "import lmemo; store = lmemo.Store('s'); key = lmemo.Key.of('a', b=1); store.put(key, b'v'); store.flush(); "
        "print(bytes(store.find(key)))"
    )
    assert run(environment / "bin/python", "-c", program, env=variables, cwd=tmp_path) == "b'v'\n"


@pytest.mark.parametrize("file", ["man/man1/lmemo.1", "bash-completion/completions/lmemo"])
def test_man_and_the_shells_find_their_files(environment: Path, file: str) -> None:
    assert "explain" in (environment / "share" / file).read_text()


def test_nothing_of_a_machine_is_in_it(environment: Path) -> None:
    (site,) = (environment / "lib").glob("python3.*/site-packages")
    # direct_url.json is pip's, and says where it found the wheel.
    texts = [path for path in site.rglob("*") if path.suffix in {".py", ".pyi", ".json"} and path.name != "direct_url.json"]
    assert texts
    assert not [path for path in texts if os.fspath(ROOT) in path.read_text(errors="replace")]
