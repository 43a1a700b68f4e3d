"""What only the store in a directory has: where it is, its options, limits, permissions, a full disk."""

from __future__ import annotations

import logging
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmemo


def key(n: object, kind: str = "test") -> lmemo.Key:
    return lmemo.Key.of(kind, n=n)  # type: ignore[arg-type]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "lmemo"]


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LMEMO_STORE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with lmemo.Store() as store:
        assert store.path == tmp_path / "home/.cache/lmemo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    with lmemo.Store() as store:
        assert store.path == tmp_path / "home/.cache/lmemo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with lmemo.Store() as store:
        assert store.path == tmp_path / "cache/lmemo"
    monkeypatch.setenv("LMEMO_STORE", "~/mine")
    with lmemo.Store() as store:
        assert store.path == tmp_path / "home/mine"
    with lmemo.Store(tmp_path / "given") as store:
        assert store.path == tmp_path / "given"
        assert repr(store) == f"<lmemo.Store at {tmp_path}/given>"


def test_paths_of_every_type(tmp_path: Path) -> None:
    odd = os.fsdecode(bytes(tmp_path) + b"/\xff odd")
    places: list[Any] = [str(tmp_path / "a"), tmp_path / "b", odd]
    for place in places:
        with lmemo.Store(place) as store:
            assert store.put(key(1), b"one")
            assert store.path == Path(place)
        assert lmemo.Store(place).find(key(1)) == b"one"
    wrong: Any = 3
    with pytest.raises(TypeError):
        lmemo.Store(wrong)


def test_options_are_checked(directory: Path) -> None:
    open_store: Any = lmemo.Store
    for error, options in [
        (ValueError, {"max_bytes": "10 G"}),
        (ValueError, {"max_bytes": -1}),
        (TypeError, {"max_bytes": 1.5}),
        (TypeError, {"max_bytes": None}),
        (ValueError, {"max_bytes_by_kind": {"tokens": "many"}}),
        (ValueError, {"check": "never"}),
        (TypeError, {"unknown": 1}),
    ]:
        with pytest.raises(error):
            open_store(directory, **options)
    assert not directory.exists()
    with lmemo.Store(
        directory,
        max_bytes="2GiB",
        max_bytes_by_kind={"tokens": "1MiB", "forward": 4096},
        check="first_find",
        segment_bytes="1MiB",
        publish_seconds=0,
        refresh_seconds=0,
    ) as store:
        assert store.stats().max_bytes == 2 << 30
        store.put(key(1, "tokens"), b"x")
        store.flush()
        assert store.stats().kinds["tokens"].max_bytes == 1 << 20
        assert not store.read_only


def test_a_store_that_is_not_there(directory: Path) -> None:
    for options in ({"create": False}, {"read_only": True, "create": False}):
        with pytest.raises(lmemo.Error, match=str(directory)):
            lmemo.Store(directory, **options)
    assert not directory.exists()


def test_read_only_writes_nothing(directory: Path) -> None:
    with lmemo.Store(directory) as store:
        store.put(key(1), b"one")
    before = {file: file.stat().st_mtime_ns for file in directory.rglob("*")}
    with lmemo.Store(directory, read_only=True) as store:
        assert store.read_only
        assert store.find(key(1)) == b"one"
        assert store.put(key(2), b"two") is False
        assert store.put_many([(key(3), b"three")]) is False
        assert store.find(key(2)) is None
        assert store.verify().is_clean
        for call in (
            lambda: store.erase(key(1)),
            store.repair,
            store.compact,
            store.clear,
            lambda: store.prune(0),
        ):
            with pytest.raises(lmemo.Error, match="read-only"):
                call()
    assert {file: file.stat().st_mtime_ns for file in directory.rglob("*")} == before


def test_the_limit_holds_and_the_oldest_go(directory: Path) -> None:
    for n in range(20):
        with lmemo.Store(directory, max_bytes="1MiB") as store:
            store.put(key(n), bytes(100_000))
    with lmemo.Store(directory, max_bytes="1MiB") as store:
        stats = store.stats()
        assert 5 <= stats.entries <= 10
        assert stats.disk_bytes <= 1 << 20
        assert key(19) in store and key(0) not in store


def test_evict_makes_room(directory: Path) -> None:
    with lmemo.Store(directory) as store:
        store.put_many((key(n), bytes(10_000)) for n in range(50))
    with lmemo.Store(directory) as store:
        report = store.evict("100KiB")
        assert report.entries >= 40
        assert report.disk_bytes_after <= 100 * 1024 < report.disk_bytes_before
        assert store.stats().entries == 50 - report.entries
        assert store.verify().is_clean


def test_kinds_have_their_own_limits(directory: Path) -> None:
    with lmemo.Store(directory) as store:
        for n in range(50):
            store.put(key(n, "tokens"), bytes(10_000))
            store.put(key(n, "forward"), bytes(10_000))
    with lmemo.Store(directory, max_bytes_by_kind={"tokens": "100KiB"}) as store:
        store.put(key("more", "tokens"), bytes(10_000))
        store.flush()
        stats = store.stats()
        assert stats.kinds["tokens"].stored_bytes <= 120 * 1024
        assert stats.kinds["forward"].entries == 50


def test_somebody_elses_directory_costs_hits_not_the_run(
    directory: Path, in_child: Callable[..., Any]
) -> None:
    """A store of root's, used by nobody: what is there is found, what is put is lost, one warning says so."""
    with lmemo.Store(directory) as store:
        store.put(key(1), b"one")
    for folder in [directory, *(path for path in directory.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
    for folder in directory.parents:
        if (
            folder.owner() == Path.home().owner()
            and folder.stat().st_uid == os.geteuid()
            and folder != Path("/")
        ):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)

    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logging.getLogger("lmemo").addHandler(Handler())

    def child() -> dict[str, Any]:
        store = lmemo.Store(directory)
        found = store.find(key(1))
        stored = [store.put(key(n), b"x" * 1000) for n in range(2, 12)]
        flush_error = ""
        try:
            store.flush()
        except lmemo.Error as error:
            flush_error = type(error).__name__
        stats = store.stats()
        store.close()
        return {
            "found": bytes(found or b""),
            "stored": stored,
            "flush": flush_error,
            "failed": stats.failed_puts,
            "messages": list(messages),
        }

    told = in_child(child, as_nobody=True)
    assert told["found"] == b"one"
    assert told["stored"] == [False] * 10
    assert told["failed"] == 10
    assert len(told["messages"]) == 1, told["messages"]
    assert str(directory) in told["messages"][0]


def test_a_full_disk_costs_hits_not_the_run(directory: Path) -> None:
    """A file may not grow past 1 MiB: to the store it looks like a disk that is full."""
    program = f"""
import lmemo, logging, resource, time
messages = []
logging.basicConfig(level=logging.INFO)
logging.getLogger("lmemo").addFilter(lambda record: messages.append(record.getMessage()) or True)
store = lmemo.Store({str(directory)!r}, publish_seconds=1e9)
store.put(lmemo.Key.of("test", n="before"), b"before")
store.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
stored = [store.put(lmemo.Key.of("test", n=n), bytes(400_000)) for n in range(10)]
assert False in stored, stored
assert store.stats().failed_puts == stored.count(False), store.stats()
assert len(messages) == 1, messages
assert store.find(lmemo.Key.of("test", n="before")) == b"before"
for n, was_stored in enumerate(stored):
    assert (store.find(lmemo.Key.of("test", n=n)) is not None) == was_stored
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
deadline = time.monotonic() + 30  # After a failure the store does not try again at every put.
while not store.put(lmemo.Key.of("test", n="after"), b"after") and time.monotonic() < deadline:
    time.sleep(0.05)
store.flush()
store.close()
with lmemo.Store({str(directory)!r}) as again:
    assert again.find(lmemo.Key.of("test", n="after")) == b"after"
    assert again.verify().is_clean
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_flush_raises_what_put_only_counts(directory: Path) -> None:
    program = f"""
import lmemo, resource
store = lmemo.Store({str(directory)!r}, publish_seconds=1e9)
store.put(lmemo.Key.of("test", n=1), bytes(300_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (310_000, resource.RLIM_INFINITY))
for n in range(2000):
    store.put(lmemo.Key.of("test", n=n), b"")
try:
    store.flush()
except lmemo.Error as error:
    print(type(error).__name__, isinstance(error, OSError))
store.close()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout in ("IoError True\n", "NoSpace True\n"), result.stdout + result.stderr


def test_the_limit_of_open_files(directory: Path, in_child: Callable[..., Any]) -> None:
    with lmemo.Store(directory) as store:
        store.put(key(1), b"one")
        store.flush()

        def child() -> object:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            stored = [store.put(key(n), b"x") for n in range(2, 5)]
            return bytes(store.find(key(1)) or b""), stored

        found, stored = in_child(child)
        assert found == b"one"
        assert stored == [False] * 3
        assert store.put(key(2), b"two") and store.find(key(2)) == b"two"
