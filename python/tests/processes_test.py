"""Several processes on one directory: what one publishes, the others find; what a child of fork does, holds."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmemo


def key(n: object) -> lmemo.Key:
    return lmemo.Key.of("test", n=n)  # type: ignore[arg-type]


def wait_for(store: lmemo.Store, wanted: lmemo.Key, seconds: float = 10) -> lmemo.Hit | None:
    deadline = time.monotonic() + seconds
    while (hit := store.find(wanted)) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return hit


def test_what_another_process_flushed_is_found(directory: Path, run_python: Callable[..., str]) -> None:
    with lmemo.Store(directory) as store:
        assert store.find(key(1)) is None
        run_python("store.put(key(1), b'one'); store.flush()")
        assert wait_for(store, key(1)) == b"one"
        store.put(key(2), b"two")
        store.flush()
        assert run_python("print(bytes(store.find(key(2))))") == "b'two'\n"


def test_what_a_run_puts_is_published_as_it_goes(directory: Path) -> None:
    program = f"""
import lmemo, sys
store = lmemo.Store({str(directory)!r}, publish_seconds=0.01)
for n in range(10**9):
    store.put(lmemo.Key.of("test", n=n), b"%d" % n)
"""
    writer = subprocess.Popen([sys.executable, "-c", program])
    try:
        with (
            lmemo.Store(directory, read_only=True, create=False)
            if directory.exists()
            else lmemo.Store(directory) as store
        ):
            for n in (0, 1000, 5000):
                assert wait_for(store, key(n), 30) == b"%d" % n
    finally:
        writer.kill()
        writer.wait()


def test_what_a_killed_process_put_is_not_lost(directory: Path) -> None:
    program = f"""
import lmemo, os, signal
store = lmemo.Store({str(directory)!r}, publish_seconds=1e9)
for n in range(100):
    store.put(lmemo.Key.of("test", n=n), b"%d" % n)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    with lmemo.Store(directory) as store:
        assert [bytes(hit) if hit else None for hit in store.find_many(map(key, range(100)))] == [
            b"%d" % n for n in range(100)
        ]
        assert store.stats().salvaged_records == 100
        assert store.verify().is_clean


def test_two_writers_lose_nothing(directory: Path) -> None:
    program = f"""
import lmemo, sys
with lmemo.Store({str(directory)!r}, segment_bytes=16384) as store:
    for n in range(2000):
        assert store.put(lmemo.Key.of("test", n=n, writer=sys.argv[1]), sys.argv[1].encode() * 50)
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    with lmemo.Store(directory) as store:
        for name in "ab":
            assert len(store.scan(writer=name)) == 2000
            assert store.find(lmemo.Key.of("test", n=1999, writer=name)) == name.encode() * 50
        assert store.verify().is_clean


def test_the_end_of_the_process_publishes(directory: Path, run_python: Callable[..., str]) -> None:
    run_python("store.put(key(1), b'one'); cycle = [store]; cycle.append(cycle)")
    with lmemo.Store(directory, read_only=True) as store:
        assert store.find(key(1)) == b"one"
    assert not list((directory / "writing").iterdir())


def test_a_store_works_in_a_forked_child(directory: Path, in_child: Callable[..., Any]) -> None:
    store = lmemo.Store(directory)
    store.put(key("published"), b"published")
    store.flush()
    store.put(key("unpublished"), b"unpublished")

    def child() -> tuple[object, ...]:
        seen = [store.find(key("published")), store.find(key("unpublished"))]
        stored = store.put(key("child"), b"child")
        own = store.find(key("child"))
        store.flush()
        return [None if hit is None else bytes(hit) for hit in seen], stored, bytes(own or b"")

    seen, stored, own = in_child(child)
    assert seen[0] == b"published"
    assert seen[1] in (b"unpublished", None)
    assert stored is True and own == b"child"
    assert wait_for(store, key("child")) == b"child"
    assert store.find(key("unpublished")) == b"unpublished"
    store.put(key("parent"), b"parent")
    store.close()
    with lmemo.Store(directory) as again:
        for name in ("published", "unpublished", "child", "parent"):
            assert again.find(key(name)) == name.encode()
        assert again.verify().is_clean


def test_parent_and_children_write_at_once(directory: Path) -> None:
    store = lmemo.Store(directory, segment_bytes=8192)
    store.put(key("before"), b"before")
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for n in range(300):
                    assert store.put(key(f"{number}-{n}"), b"%d" % n * 10)
                    assert store.find(key(f"{number}-{n}")) == b"%d" % n * 10
                store.close()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
        store.put(key(f"parent-{number}"), b"parent")
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    store.close()
    with lmemo.Store(directory) as again:
        assert again.stats().entries == 1 + 4 + 4 * 300
        assert again.verify().is_clean


def square(n: int) -> int:
    """What a DataLoader worker does: find, else compute and put, in a store that was opened before the fork."""
    assert shared is not None
    hit = shared.find(key(n))
    if hit is not None:
        return int(bytes(hit))
    shared.put(key(n), b"%d" % (n * n))
    return n * n


shared: lmemo.Store | None = None


def test_multiprocessing_with_fork(directory: Path) -> None:
    global shared
    shared = lmemo.Store(directory)
    try:
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(square, range(200)) == [n * n for n in range(200)]
            pool.close()
            pool.join()
        shared.close()
        with lmemo.Store(directory) as store:  # The workers ended without closing: nothing they put is lost.
            assert [int(bytes(hit)) if hit else None for hit in store.find_many(map(key, range(200)))] == [
                n * n for n in range(200)
            ]
    finally:
        shared = None
