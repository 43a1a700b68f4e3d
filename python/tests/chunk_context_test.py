"""worker_context(): torch's own DataLoader and its processes, with a lighter way between them. What is feared: a hang, a lost batch, one that comes twice."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from multiprocessing import context
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from made_up_chunks import make_chunk_set
from torch.utils.data import DataLoader, Dataset

import lmemo
from lmemo._torch_context import LONGEST_IN_SOCKET, WorkerQueue
from lmemo.torch import ChunkDataset, ChunkLoader, worker_context

STARTS = ("fork", "spawn", "forkserver")
LONG_ENOUGH = 60  # Seconds after which a test says that it hangs.


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chunk_set(tmp_path_factory.mktemp("chunks") / "set")


@pytest.fixture(autouse=True)
def _hangs_are_failures() -> Iterator[None]:
    def hangs(*_: Any) -> None:
        raise TimeoutError("hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(LONG_ENOUGH)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def plain(batch: Any) -> Any:
    return {name: column.tolist() if isinstance(column, torch.Tensor) else column for name, column in batch.items()}


def in_child(start: str, work: Any, *arguments: Any) -> Any:
    process = worker_context(start).Process(target=work, args=arguments, daemon=True)  # type: ignore[attr-defined]
    process.start()
    return process


# ------------------------------------------------------------------------------------------------------- the queue


def test_objects_come_in_order_whatever_their_size() -> None:
    objects = [b"", None, (1, [2, 3]), b"x" * LONGEST_IN_SOCKET, "y" * 3_000_000, numpy.arange(100_000), (4, {})]
    way = WorkerQueue()
    for sent in objects:
        way.put(sent)
    for sent in objects:
        numpy.testing.assert_equal(way.get(timeout=LONG_ENOUGH), sent)
    with pytest.raises(queue.Empty):
        way.get(timeout=0.01)
    with pytest.raises(queue.Empty):
        way.get_nowait()
    assert way.empty()


def test_putting_never_waits() -> None:
    way = WorkerQueue()
    for number in range(3000):  # Thirty megabytes, which no socket takes.
        way.put((number, b"x" * 10_000))
    assert [way.get(timeout=LONG_ENOUGH)[0] for _ in range(3000)] == list(range(3000))
    for number in range(3):  # The thread has ended or ends; what comes now is neither lost nor first.
        way.put(number)
    assert [way.get(timeout=LONG_ENOUGH) for _ in range(3)] == [0, 1, 2]


def test_what_cannot_be_pickled_is_said_at_once() -> None:
    way = WorkerQueue()
    with pytest.raises((AttributeError, TypeError, lmemo.Error, ValueError, ImportError, Exception), match="pickle|lambda"):
        way.put((b"half of it" * 100, lambda: None))
    way.put("whole")
    assert way.get(timeout=LONG_ENOUGH) == "whole"
    way.close()
    with pytest.raises(ValueError, match="closed"):
        way.put("late")
    with pytest.raises(ValueError, match="closed"):
        way.get(timeout=0.01)


def _answer(asked: WorkerQueue, answers: WorkerQueue, count: int) -> None:
    for _ in range(count):
        answers.put(asked.get())


@pytest.mark.parametrize("start", STARTS)
def test_both_ends_may_be_full_at_once(start: str) -> None:
    asked, answers = (worker_context(start).Queue() for _ in range(2))
    asked.cancel_join_thread()
    child = in_child(start, _answer, asked, answers, 400)
    for number in range(400):
        asked.put((number, b"x" * 50_000))
    child.join(0.2)  # It has filled the way back, at which nobody looks yet.
    assert [answers.get(timeout=LONG_ENOUGH)[0] for _ in range(400)] == list(range(400))
    child.join(LONG_ENOUGH)
    assert child.exitcode == 0


def _put_many(way: WorkerQueue, who: int, count: int, all_came: Any) -> None:
    torch.set_num_threads(1)  # As DataLoader's workers do: OpenMP's threads stay with the parent.
    for number in range(count):
        way.put((who, number, torch.full((number % 3 * 20_000,), number), b"x" * (number % 5 * 30_000)))
    all_came.wait(LONG_ENOUGH)  # Till then tensors are asked for here.


@pytest.mark.parametrize("start", STARTS[:2])
def test_many_write_to_one(start: str) -> None:
    way = worker_context(start).Queue()
    all_came = worker_context(start).Event()
    children = [in_child(start, _put_many, way, who, 60, all_came) for who in range(3)]
    seen: dict[int, int] = dict.fromkeys(range(3), 0)
    for _ in range(180):
        who, number, tensor, filling = way.get(timeout=LONG_ENOUGH)
        assert number == seen[who] and tensor.tolist() == [number] * (number % 3 * 20_000) and len(filling) == number % 5 * 30_000
        seen[who] += 1
    all_came.set()
    for child in children:
        child.join(LONG_ENOUGH)


def _put_and_end(way: WorkerQueue, count: int) -> None:
    for number in range(count):
        way.put((number, b"x" * 50_000))


def test_a_process_that_ends_sends_all_before() -> None:
    way = worker_context("fork").Queue()
    child = in_child("fork", _put_and_end, way, 100)
    child.join(0.2)
    assert [way.get(timeout=LONG_ENOUGH)[0] for _ in range(100)] == list(range(100))
    child.join(LONG_ENOUGH)


def _be_killed(way: WorkerQueue) -> None:
    for number in range(100):
        way.put((number, b"x" * 50_000))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_whole_objects_and_no_lock() -> None:
    way = worker_context("fork").Queue()
    child = in_child("fork", _be_killed, way)
    child.join(LONG_ENOUGH)
    other = in_child("fork", _put_and_end, way, 5)
    numbers = []
    while (number := way.get(timeout=LONG_ENOUGH))[0] != 4 or len(numbers) < 5:
        assert len(number[1]) == 50_000
        numbers.append(number[0])
    begun = numbers.index(0, 1)
    assert numbers == [*range(begun), *range(4)]
    other.join(LONG_ENOUGH)


def test_a_limited_queue_is_that_of_multiprocessing() -> None:
    assert isinstance(worker_context().Queue(3), multiprocessing.queues.Queue)
    assert isinstance(worker_context(), context.BaseContext)
    with pytest.raises(lmemo.InvalidArgument, match="fork"):
        worker_context("thread")


# -------------------------------------------------------------------------------------------------- the DataLoader


@pytest.mark.parametrize("start", STARTS)
def test_batches_are_those_of_one_process(directory: Path, start: str) -> None:
    dataset = ChunkDataset(directory, seed=3)
    alone = [plain(batch) for batch in DataLoader(dataset, 8)]
    assert sorted(row for batch in alone for row in batch["input_ids"]) == sorted(row["input_ids"].tolist() for row in ChunkDataset(directory, shuffle=False))
    way: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": worker_context(start)}
    for collate in (dataset.collate, None):  # Named by the workers, and by torch's own collate function.
        assert [plain(batch) for batch in DataLoader(dataset, 8, collate_fn=collate, **way)] == alone
    assert [plain(batch) for batch in DataLoader(dataset.iterable(8), None, **way)] == alone


def decoded(samples: Any) -> dict[str, Any]:
    return {name: torch.stack([sample[name] for sample in samples]) for name in ("input_ids", "labels")}


def test_workers_that_decode(directory: Path) -> None:
    dataset = ChunkDataset(directory, seed=3)
    alone = [plain(batch) for batch in DataLoader(dataset, 8, collate_fn=decoded)]
    for start in ("fork", "spawn"):
        loader = DataLoader(dataset, 8, num_workers=2, collate_fn=decoded, multiprocessing_context=worker_context(start))
        assert [plain(batch) for batch in loader] == alone


def test_workers_that_live_longer_than_an_epoch(directory: Path) -> None:
    dataset, other = ChunkDataset(directory, seed=3), ChunkDataset(directory, seed=3)
    loader = DataLoader(dataset, 8, num_workers=2, collate_fn=dataset.collate, persistent_workers=True, multiprocessing_context=worker_context())
    for epoch in range(3):
        dataset.set_epoch(epoch)
        other.set_epoch(epoch)
        assert [plain(batch) for batch in loader] == [plain(batch) for batch in DataLoader(other, 8)]
    next(iter(loader))  # An epoch that is left, and taken up again from its start.
    assert len(list(loader)) == len(loader)


@pytest.mark.parametrize("workers", [(2, 1), (1, 3), (2, 0)])
def test_it_goes_on_in_the_middle_of_an_epoch(directory: Path, workers: tuple[int, int]) -> None:
    alone = [plain(batch) for batch in ChunkLoader(ChunkDataset(directory, seed=3), 8)]
    options: list[dict[str, Any]] = [{"num_workers": count, "multiprocessing_context": worker_context()} if count else {} for count in workers]
    loader = ChunkLoader(ChunkDataset(directory, seed=3), 8, **options[0])
    batches = iter(loader)
    read = [plain(next(batches)) for _ in range(5)]
    state = loader.state_dict()
    batches.close()
    went_on = ChunkLoader(ChunkDataset(directory, seed=3), 8, **options[1])
    went_on.load_state_dict(state)
    assert read + [plain(batch) for batch in went_on] == alone


class Numbers(Dataset[Any]):
    """Batches of a given size; the one at `fatal` kills its worker."""

    def __init__(self, size: int, fatal: int = -1, count: int = 400) -> None:
        self.size, self.fatal, self.count = size, fatal, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return index, bytes(self.size)


def as_they_are(samples: Any) -> Any:
    return samples


@pytest.mark.parametrize("size", [0, 40_000, 200_000])
def test_far_ahead_with_ways_that_fill_up(size: int) -> None:
    loader = DataLoader(
        Numbers(size), sampler=list(range(400)), batch_size=1, num_workers=2, prefetch_factor=100, collate_fn=as_they_are, multiprocessing_context=worker_context()
    )
    batches = iter(loader)
    time.sleep(0.2)  # All that fits is under way.
    assert [(batch[0][0], len(batch[0][1])) for batch in batches] == [(number, size) for number in range(400)]
    list(zip(range(3), loader, strict=False))  # Left in the middle: the workers end, full ways or not.


@pytest.mark.parametrize("size", [0, 40_000])
def test_a_killed_worker_is_noticed(size: int) -> None:
    loader = DataLoader(Numbers(size, fatal=37), 1, num_workers=2, collate_fn=as_they_are, multiprocessing_context=worker_context())
    read = []
    with pytest.raises(RuntimeError, match="killed by signal|exited unexpectedly"):
        for batch in loader:
            read.append(batch[0][0])
    assert read == list(range(len(read))) and len(read) <= 37


def unpicklable(samples: Any) -> Any:
    return lambda: samples


def test_a_batch_that_cannot_be_pickled_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Numbers(0), 1, num_workers=1, collate_fn=unpicklable, multiprocessing_context=worker_context()))


def raising(samples: Any) -> Any:
    raise LookupError("nothing here")


def test_an_error_in_a_worker_comes_over() -> None:
    with pytest.raises(LookupError, match="nothing here"):
        list(DataLoader(Numbers(0), 1, num_workers=2, collate_fn=raising, multiprocessing_context=worker_context()))


def test_a_time_out_is_torchs() -> None:
    loader = DataLoader(Numbers(0), 1, num_workers=1, collate_fn=slow, timeout=1, multiprocessing_context=worker_context())
    with pytest.raises(RuntimeError, match="timed out"):
        next(iter(loader))


def slow(samples: Any) -> Any:
    time.sleep(3)
    return samples


def test_another_thread_may_receive() -> None:
    """As the one that pins memory, which is woken by what this process sends to itself."""
    way = worker_context().Queue()
    child = in_child("fork", _put_and_end, way, 3)
    arrived: list[Any] = []

    def receive() -> None:
        while (found := way.get(timeout=LONG_ENOUGH)) != (None, None):
            arrived.append(found[0])

    thread = threading.Thread(target=receive)
    thread.start()
    child.join(LONG_ENOUGH)
    way.put((None, None))
    thread.join(LONG_ENOUGH)
    assert arrived == [0, 1, 2]


ENDLESS = """
    import os, sys
    sys.path.insert(0, {tests!r})
    from chunk_context_test import Numbers, as_they_are
    from torch.utils.data import DataLoader
    from lmemo.torch import worker_context

    # One pass that does not end: an interrupt in DataLoader's destructor, which ends workers, would be printed and forgotten.
    loader = DataLoader(Numbers({size}, count=10**9), 1, num_workers=2, prefetch_factor=100, collate_fn=as_they_are, multiprocessing_context=worker_context())
    batches = iter(loader)
    next(batches)
    print(*(worker.pid for worker in batches._workers), flush=True)
    for batch in batches:
        pass
"""


def ended(pids: list[int]) -> bool:
    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    while any(map(runs, pids)):  # The alarm ends this.
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("size", [0, 40_000])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_process(sent: signal.Signals, size: int) -> None:
    program = textwrap.dedent(ENDLESS.format(tests=str(Path(__file__).parent), size=size))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # As a terminal does.
        assert "KeyboardInterrupt" in process.communicate(timeout=LONG_ENOUGH)[1]
    else:
        process.kill()
        process.wait()
    assert ended(workers)
    process.stdout.close()
    process.stderr.close()


LATE = """
    import os, queue, time
    from lmemo.torch import worker_context

    def wait_as_torch_does(way):
        while True:
            try:
                way.get(timeout=0.5)
            except queue.Empty:
                pass

    def work(way, starter):
        while os.getppid() == starter:
            time.sleep(0.01)
        {what}

    context = worker_context("fork")
    child = context.Process(target=work, args=(context.Queue(), os.getpid()))
    child.start()
    print(child.pid, flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("what", ["way.get()", "wait_as_torch_does(way)", "[way.put(bytes(40_000)) for _ in range(1000)]"])
def test_a_worker_that_looks_late_ends_with_its_process(what: str) -> None:
    """The first time that it looks who its parent is, the one that started it is gone."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(LATE.format(what=what))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert ended([worker])
    process.stdout.close()


def test_a_chunk_loader_that_starts_processes_has_it(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ChunkDataset(directory, seed=3)
    alone = [plain(batch) for batch in ChunkLoader(dataset, 8)]
    made: list[WorkerQueue] = []
    make = WorkerQueue.__init__
    monkeypatch.setattr(WorkerQueue, "__init__", lambda way: (made.append(way), make(way))[1])
    for options in ({"timeout": LONG_ENOUGH}, {"multiprocessing_context": "fork"}, {"multiprocessing_context": worker_context("fork")}):
        dataset.set_epoch(0)
        made.clear()
        assert [plain(batch) for batch in ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2, **options)] == alone
        assert len(made) == 3
    made.clear()
    other = multiprocessing.get_context("fork")
    assert len(list(ChunkLoader(ChunkDataset(directory, seed=3), 8, num_workers=2, multiprocessing_context=other))) == len(alone) and not made
