"""Many threads on one store object, closing and interrupting included."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lmemo


def key(n: object) -> lmemo.Key:
    return lmemo.Key.of("test", n=n)  # type: ignore[arg-type]


def test_threads_put_find_and_erase(store: lmemo.StoreBase) -> None:
    def work(thread: int) -> int:
        for n in range(300):
            mine = key(f"{thread}-{n}")
            assert store.find(mine) is None
            assert store.put(mine, mine.digest * (n % 7))
            assert store.find(mine) == mine.digest * (n % 7)
            if n % 5 == 0:
                assert store.erase(mine)
                assert mine not in store
            if n % 100 == 0:
                store.flush()
        return thread

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]
    assert store.stats().entries == 4 * 240


def test_upkeep_while_others_read_and_write(store: lmemo.StoreBase) -> None:
    keys = [key(n) for n in range(200)]
    store.put_many((wanted, wanted.digest) for wanted in keys)
    stop = threading.Event()

    def read() -> int:
        rounds = 0
        while not stop.is_set():
            assert all(hit == wanted.digest for wanted, hit in zip(keys, store.find_many(keys)))
            assert all(store.find(wanted) == wanted.digest for wanted in keys)
            rounds += 1
        return rounds

    def write() -> int:
        rounds = 0
        while not stop.is_set():
            store.put_many((wanted, wanted.digest) for wanted in keys[::2])
            rounds += 1
        return rounds

    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(read), pool.submit(read), pool.submit(write)]
        try:
            for _ in range(10):
                store.compact(progress=lambda progress: None)
                assert not store.verify().damage
                store.prune(3600)
                assert len(store.scan()) == 200
                store.stats()
        finally:
            stop.set()
        assert all(other.result() > 0 for other in others)


def test_closing_while_others_work(store: lmemo.StoreBase) -> None:
    started = threading.Barrier(4)

    def work(thread: int) -> str:
        started.wait()
        for n in range(10**9):
            try:
                store.put(key(f"{thread}-{n}"), bytes(1000))
                store.find(key(f"{thread}-{n // 2}"))
                if n % 50 == 0:
                    store.verify()
            except lmemo.InvalidArgument as error:
                return str(error)
        raise AssertionError("nobody closed it")

    with ThreadPoolExecutor(3) as pool:
        workers = [pool.submit(work, thread) for thread in range(3)]
        started.wait()
        time.sleep(0.1)
        store.close()
        assert all("closed" in worker.result() for worker in workers)


INTERRUPTED = """
import lmemo, sys, threading
store = lmemo.Store(sys.argv[1])
store.put_many((lmemo.Key.of("test", n=n), bytes(20_000)) for n in range(2000))
store.flush()
busy = threading.Thread(target=lambda: [store.find(lmemo.Key.of("test", n=n % 2000)) for n in range(10**9)], daemon=True)
busy.start()
print("ready", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    store.put(lmemo.Key.of("test", n="after"), b"after")
    store.flush()
    assert store.find(lmemo.Key.of("test", n="after")) == b"after"
    print("interrupted", store.verify().is_clean, flush=True)
"""


@pytest.mark.parametrize("call", ["store.verify()", "store.compact()", "store.scan()", "store.prune(1000)"])
def test_ctrl_c_stops_long_work(directory: Path, call: str) -> None:
    program = INTERRUPTED.format(call=call)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(2)
    output, errors = process.communicate(timeout=30)
    assert output == "interrupted True\n", errors
    assert process.returncode == 0


def test_other_threads_run_during_long_work(directory: Path, run_python: Callable[..., str]) -> None:
    """A progress callback that waits for another thread would hang if that thread could not run."""
    answer = run_python(
        """
import threading
store.put_many((key(n), bytes(20_000)) for n in range(500))
store.flush()
asked, answered = threading.Event(), threading.Event()
def other():
    asked.wait(); store.find(key(1)); store.put(key(-1), b'x'); answered.set()
threading.Thread(target=other).start()
def progress(p):
    asked.set()
    assert answered.wait(20)
store.verify(progress=progress)
asked.set()
print('done')
"""
    )
    assert answer == "done\n"
