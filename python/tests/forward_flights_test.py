"""Single flight: of all who ask for the same thing at once, one computes. Nobody waits for himself."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lmemo.forward import BackendInstrumentation

SECONDS = 20  # Until a test that hangs is a failure.


def run_threads(count: int, work: Any) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [future.result(SECONDS) for future in [pool.submit(work, n) for n in range(count)]]


def wait_until(condition: Any) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.001)


def test_sixteen_threads_one_key_one_compute() -> None:
    inst = BackendInstrumentation()
    barrier, computed = threading.Barrier(16), []

    def compute() -> object:
        computed.append(threading.get_ident())
        time.sleep(0.2)
        return object()

    def work(_: int) -> object:
        barrier.wait()
        return inst.cached("op", "base", "prompt", 1, compute)

    values = run_threads(16, work)
    assert len(computed) == 1
    assert len(set(map(id, values))) == 1
    assert (inst.stats.cache_hits, inst.stats.cache_misses, inst.stats.forward_passes, inst.stats.shared) == (15, 1, 1, 15)


def test_a_failing_compute_wakes_all_and_each_gets_the_error() -> None:
    inst = BackendInstrumentation()
    go, computed = threading.Event(), []

    def compute() -> Any:
        computed.append(1)
        assert go.wait(SECONDS)
        raise LookupError("out of memory")

    def work(_: int) -> str:
        try:
            inst.cached("op", "base", "prompt", 1, compute)
        except LookupError as error:
            return str(error)
        return "no error"

    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(work, n) for n in range(16)]
        wait_until(lambda: computed)
        time.sleep(0.1)  # The others come to wait.
        go.set()
        assert [future.result(SECONDS) for future in asked] == ["out of memory"] * 16
    assert len(inst.cache) == 0
    assert inst.stats.failures == len(computed)
    assert inst.stats.total_lookups == 0
    assert inst.cached("op", "base", "prompt", 1, lambda: 5) == 5


def test_different_keys_do_not_wait_for_each_other() -> None:
    inst = BackendInstrumentation()
    both = threading.Barrier(2)
    values = run_threads(2, lambda n: inst.cached("op", "base", str(n), 1, lambda: both.wait(SECONDS) >= 0))
    assert values == [True, True]


def test_a_compute_may_ask_for_other_things() -> None:
    inst = BackendInstrumentation()

    def fibonacci(n: int) -> int:
        return inst.cached("fibonacci", "base", str(n), 1, lambda: n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2))

    assert fibonacci(30) == 832040
    assert (inst.stats.forward_passes, inst.stats.cache_hits) == (31, 28)


def test_a_compute_that_asks_for_itself_computes_by_itself() -> None:
    inst = BackendInstrumentation()
    depth = []

    def compute() -> int:
        depth.append(1)
        return 1 if len(depth) == 3 else inst.cached("op", "base", "prompt", 1, compute) + 1

    assert inst.cached("op", "base", "prompt", 1, compute) == 3
    assert inst.cached_batch("op", "base", ["prompt"], 1, lambda missing: []) == [3]
    assert inst.stats.forward_passes == 3


def test_a_batch_that_asks_for_its_own_prompts_computes_by_itself() -> None:
    inst = BackendInstrumentation()

    def outer(indices: list[int]) -> list[Any]:
        inner = inst.cached_batch("op", "base", ["b", "c", "b"], 1, lambda missing: [f"inner {n}" for n in missing])
        assert inner == ["inner 0", "inner 1", "inner 0"]
        return [f"outer {n}" for n in indices]

    assert inst.cached_batch("op", "base", ["a", "b"], 1, outer) == ["outer 0", "outer 1"]


def test_two_threads_that_ask_for_each_others_work_do_not_deadlock() -> None:
    inst = BackendInstrumentation()
    both = threading.Barrier(2)

    def work(n: int) -> str:
        def compute() -> str:
            both.wait(SECONDS)  # Each is computing its own before it asks for the other's.
            other = inst.cached("op", "base", str(1 - n), 1, lambda: f"{1 - n} by {n}")
            return f"{n} with {other}"

        return inst.cached("op", "base", str(n), 1, compute)

    values = run_threads(2, work)
    assert all(value.startswith(str(n)) for n, value in enumerate(values))
    assert len(inst.cache) == 2


def test_a_ring_of_threads_does_not_deadlock() -> None:
    count = 6
    inst = BackendInstrumentation()
    barrier = threading.Barrier(count)

    def work(n: int) -> int:
        def compute() -> int:
            barrier.wait(SECONDS)
            return inst.cached("op", "base", str((n + 1) % count), 1, lambda: 1000) + 1

        return inst.cached("op", "base", str(n), 1, compute)

    assert all(value > 1000 for value in run_threads(count, work))


def test_batches_that_overlap_share_and_do_not_deadlock() -> None:
    inst = BackendInstrumentation()
    both, computed = threading.Barrier(2), []

    def work(n: int) -> list[str]:
        prompts = ["a", "x", "b", "y"] if n == 0 else ["y", "b", "x", "a"]

        def compute(indices: list[int]) -> list[str]:
            time.sleep(0.05)
            computed.extend(prompts[index] for index in indices)
            return [prompts[index] * 2 for index in indices]

        both.wait(SECONDS)
        return inst.cached_batch("op", "base", prompts, 1, compute)

    assert run_threads(2, work) == [["aa", "xx", "bb", "yy"], ["yy", "bb", "xx", "aa"]]
    assert sorted(computed) == ["a", "b", "x", "y"]
    assert (inst.stats.cache_misses, inst.stats.cache_hits) == (4, 4)


def test_a_thread_with_the_context_of_a_compute_does_not_wait_for_it() -> None:
    inst = BackendInstrumentation()

    def compute() -> str:
        with ThreadPoolExecutor(1) as pool:
            context = contextvars.copy_context()
            inner = pool.submit(context.run, inst.cached, "op", "base", "prompt", 1, lambda: "inner")
            return f"outer with {inner.result(SECONDS)}"

    assert inst.cached("op", "base", "prompt", 1, compute) == "outer with inner"


def test_an_interrupted_compute_is_taken_over_by_one_who_waits() -> None:
    inst = BackendInstrumentation()
    started, waiting = threading.Event(), threading.Event()

    def interrupted() -> Any:
        started.set()
        assert waiting.wait(SECONDS)
        time.sleep(0.1)
        raise KeyboardInterrupt

    def first() -> str:
        try:
            inst.cached("op", "base", "prompt", 1, interrupted)
        except KeyboardInterrupt:
            return "interrupted"
        return "finished"

    def second(_: int) -> Any:
        assert started.wait(SECONDS)
        waiting.set()
        return inst.cached("op", "base", "prompt", 1, lambda: "taken over")

    def third(_: int) -> Any:
        assert started.wait(SECONDS)
        return inst.cached_batch("op", "base", ["other", "prompt"], 1, lambda missing: [f"batch {n}" for n in missing])

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(first), pool.submit(second, 1), pool.submit(third, 1)]
        assert answers[0].result(SECONDS) == "interrupted"
        value = answers[1].result(SECONDS)
        assert value in ("taken over", "batch 1")
        assert answers[2].result(SECONDS) == ["batch 0", value]


def test_ctrl_c_ends_the_waiting() -> None:
    program = """
import threading, time
from lmemo.forward import BackendInstrumentation
inst = BackendInstrumentation()
threading.Thread(target=lambda: inst.cached("op", "v", "p", 1, lambda: time.sleep(60)), daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
try:
    inst.cached("op", "v", "p", 1, lambda: 1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
import os
os._exit(0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # A background job ignores it.
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=SECONDS)[0] == "interrupted\n"
    finally:
        process.kill()


def test_objects_as_keys_share_a_flight_too() -> None:
    class View:
        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, View) and other.name == self.name

        def __hash__(self) -> int:
            return hash(self.name)

    inst = BackendInstrumentation()
    barrier, computed = threading.Barrier(8), []

    def work(_: int) -> Any:
        barrier.wait(SECONDS)
        return inst.cached("op", View("base"), "prompt", 1, lambda: computed.append(time.sleep(0.1)) or len(computed))  # type: ignore[arg-type]

    assert run_threads(8, work) == [1] * 8
    assert inst.stats.forward_passes == 1


# ----------------------------------------------------------------------------------------------------------- asyncio


def run(coroutine: Any) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(coroutine, SECONDS)

    return asyncio.run(limited())


def test_tasks_share_one_compute() -> None:
    inst = BackendInstrumentation()
    computed = []

    async def compute() -> str:
        computed.append(1)
        await asyncio.sleep(0.05)
        return "value"

    async def main() -> list[str]:
        return await asyncio.gather(*(inst.acached("op", "base", "prompt", 1, compute) for _ in range(16)))

    assert run(main()) == ["value"] * 16
    assert len(computed) == 1
    assert (inst.stats.cache_hits, inst.stats.cache_misses, inst.stats.shared) == (15, 1, 15)
    assert inst.cached("op", "base", "prompt", 1, lambda: "never") == "value"
    assert run(inst.acached("op", "base", "other", 1, lambda: "a plain function")) == "a plain function"


def test_tasks_get_the_error_of_the_one_who_computed() -> None:
    inst = BackendInstrumentation()

    async def compute() -> Any:
        await asyncio.sleep(0.05)
        raise LookupError("gone")

    async def main() -> list[Any]:
        return await asyncio.gather(*(inst.acached("op", "base", "prompt", 1, compute) for _ in range(5)), return_exceptions=True)

    assert [str(error) for error in run(main())] == ["gone"] * 5
    assert (inst.stats.failures, len(inst.cache)) == (1, 0)


def test_asynchronous_batches_keep_the_same_rules() -> None:
    inst = BackendInstrumentation()
    inst.cached("op", "base", "b", 1, lambda: "B")
    asked = []

    async def compute(indices: list[int]) -> list[str]:
        asked.append(indices)
        await asyncio.sleep(0.02)
        return [prompts[index].upper() for index in indices]

    prompts = ["a", "b", "c", "a"]

    async def main() -> list[Any]:
        return await asyncio.gather(*(inst.acached_batch("op", "base", prompts, 1, compute) for _ in range(3)))

    assert run(main()) == [["A", "B", "C", "A"]] * 3
    assert asked == [[0, 2]]
    stats = inst.stats
    assert (stats.cache_misses, stats.cache_hits, stats.batches_sent, stats.batched_prompts, stats.max_batch_size) == (3, 10, 1, 2, 2)
    assert run(inst.acached_batch("op", "base", [], 1, compute)) == []
    with pytest.raises(RuntimeError, match="1 values for 2 misses"):
        run(inst.acached_batch("op", "base", ["x", "y"], 1, lambda indices: [1]))
    assert len(inst.cache) == 3
    assert run(inst.acached_batch("op", "base", ["x", "y"], 1, lambda indices: [1, 2])) == [1, 2]


def test_a_cancelled_task_does_not_cancel_those_who_wait() -> None:
    inst = BackendInstrumentation()

    async def slow() -> str:
        await asyncio.sleep(60)
        return "slow"

    async def main() -> tuple[Any, ...]:
        first = asyncio.create_task(inst.acached("op", "base", "prompt", 1, slow))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(inst.acached("op", "base", "prompt", 1, lambda: "quick"))
        third = asyncio.create_task(inst.acached_batch("op", "base", ["prompt"], 1, lambda missing: ["quick"]))
        await asyncio.sleep(0.02)
        first.cancel()
        return (await asyncio.gather(first, return_exceptions=True), await second, await third)

    ([cancelled], second, third) = run(main())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert (second, third) == ("quick", ["quick"])


def test_a_task_that_no_longer_waits_leaves_the_others_alone() -> None:
    inst = BackendInstrumentation()
    go = asyncio.Event()

    async def compute() -> str:
        await go.wait()
        return "value"

    async def main() -> str:
        first = asyncio.create_task(inst.acached("op", "base", "prompt", 1, compute))
        await asyncio.sleep(0.01)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(inst.acached("op", "base", "prompt", 1, compute), 0.02)
        go.set()
        return await first

    assert run(main()) == "value"


def test_tasks_and_threads_share_one_compute() -> None:
    inst = BackendInstrumentation()
    started, go = threading.Event(), threading.Event()

    def compute() -> str:
        started.set()
        assert go.wait(SECONDS)
        return "from the thread"

    async def main() -> list[str]:
        waiting = [asyncio.create_task(inst.acached("op", "base", "prompt", 1, lambda: "from a task")) for _ in range(3)]
        await asyncio.sleep(0.02)
        go.set()
        return await asyncio.gather(*waiting)

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(inst.cached, "op", "base", "prompt", 1, compute)
        assert started.wait(SECONDS)
        assert run(main()) == ["from the thread"] * 3
        assert thread.result(SECONDS) == "from the thread"
    assert inst.stats.forward_passes == 1


def test_tasks_inside_a_compute_do_not_wait_for_it() -> None:
    inst = BackendInstrumentation()

    async def compute() -> str:
        inner = await asyncio.gather(*(inst.acached("op", "base", "prompt", 1, lambda: "inner") for _ in range(2)))
        return f"outer with {inner}"

    value = run(inst.acached("op", "base", "prompt", 1, compute))
    assert value == "outer with ['inner', 'inner']"


def test_a_blocking_call_inside_a_task_does_not_wait_for_its_own_loop() -> None:
    inst = BackendInstrumentation()

    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "from the task"

    async def main() -> tuple[str, str]:
        task = asyncio.create_task(inst.acached("op", "base", "prompt", 1, slow))
        await asyncio.sleep(0.01)
        blocking = inst.cached("op", "base", "prompt", 1, lambda: "by itself")  # The loop cannot go on meanwhile.
        return blocking, await task

    assert run(main()) == ("by itself", "from the task")


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(in_child: Callable[..., Any]) -> None:
    inst = BackendInstrumentation()
    go, computed = threading.Event(), []

    def compute() -> str:
        computed.append(1)
        assert go.wait(SECONDS)
        return "parent"

    def child() -> tuple[str, list[str], int]:
        signal.alarm(SECONDS)
        one = inst.cached("op", "base", "prompt", 1, lambda: "child")
        return one, inst.cached_batch("op", "base", ["prompt", "other"], 1, lambda missing: ["child"] * len(missing)), len(inst.cache)

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(inst.cached, "op", "base", "prompt", 1, compute) for _ in range(3)]
        wait_until(lambda: computed)
        time.sleep(0.1)  # So that the others wait.
        assert in_child(child) == ("child", ["child", "child"], 2)
        go.set()
        assert [one.result(SECONDS) for one in asking] == ["parent"] * 3
    assert len(computed) == 1


def test_a_compute_that_forks_goes_on_in_both_processes(in_child: Callable[..., Any]) -> None:
    inst = BackendInstrumentation()

    def compute() -> tuple[str, str]:
        signal.alarm(SECONDS)
        told = in_child(lambda: inst.cached("op", "base", "prompt", 1, lambda: "the child, in the middle of the same"))
        signal.alarm(0)
        return "parent", told

    assert inst.cached("op", "base", "prompt", 1, compute) == ("parent", "the child, in the middle of the same")
    assert inst.cached("op", "base", "prompt", 1, lambda: "again") == ("parent", "the child, in the middle of the same")
