"""Hits of the forward cache by 1, 2 and 4 threads, beside functools.lru_cache and a function that does nothing.

    ./dev bench forward_threads
    ft/bin/python bench/forward_threads_bench.py        # a free-threaded Python with lmemo in it (CONTRIBUTING.md says how)

As many lookups by all threads together as by one, by the clock, nanoseconds each; medians of rounds that take turns. Under the GIL one thread
runs at a time, so that 1.0 is all there is, less what handing it over costs whatever the threads call. Without it, threads wait for
one another where they write to the same memory: with prompts of its own, a thread asks the same with other str objects.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import threading
import time
from collections.abc import Callable

from lmemo.forward import BackendInstrumentation

PROMPTS = [f"{n:06} " + "x" * 193 for n in range(256)]
THREADS = [1, 2, 4]

AskAll = Callable[[list[str], int], None]  # The prompts, so many times.


def never() -> object:
    raise AssertionError("everything is cached")


def ours() -> AskAll:
    inst = BackendInstrumentation(cache_maxsize=len(PROMPTS))
    for prompt in PROMPTS:
        inst.cached("next_token_dist", "base", prompt, 256, lambda: (1.0, True))

    def ask_all(prompts: list[str], loops: int) -> None:
        cached = inst.cached
        for _ in range(loops):
            for prompt in prompts:
                cached("next_token_dist", "base", prompt, 256, never)

    return ask_all


def lru_cache() -> AskAll:
    cached = functools.lru_cache(maxsize=len(PROMPTS))(lambda op, view_id, prompt, top_k: (1.0, True))

    def ask_all(prompts: list[str], loops: int) -> None:
        for _ in range(loops):
            for prompt in prompts:
                cached("next_token_dist", "base", prompt, 256)

    return ask_all


def nothing() -> AskAll:
    def ask_all(prompts: list[str], loops: int) -> None:
        for _ in range(loops):
            for prompt in prompts:
                callable(prompt)

    return ask_all


def nanoseconds(ask_all: AskAll, threads: int, loops: int, own_prompts: bool) -> float:
    barrier = threading.Barrier(threads + 1)

    def work() -> None:
        prompts = ["".join(list(prompt)) for prompt in PROMPTS] if own_prompts else PROMPTS
        barrier.wait()
        ask_all(prompts, loops // threads)
        barrier.wait()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    wall = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return wall / (loops // threads * threads * len(PROMPTS)) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--loops", type=int, default=2000, help="passes over 256 prompts")
    options = parser.parse_args()

    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, {'with' if has_gil else 'without'} the GIL; ns a hit by 1, 2, 4 threads; 1 over 4 (at least 1)")
    peers = {"lmemo": ours(), "lru_cache": lru_cache(), "callable()": nothing()}
    for own_prompts in (False, True):
        found: dict[str, list[list[float]]] = {name: [] for name in peers}
        for _ in range(options.rounds):
            for name, ask_all in peers.items():
                found[name].append([nanoseconds(ask_all, threads, options.loops, own_prompts) for threads in THREADS])
        for name, rounds in found.items():
            shown = " / ".join(f"{statistics.median(times):.1f}" for times in zip(*rounds, strict=True))
            ratio = statistics.median(times[0] / times[-1] for times in rounds)
            print(f"{name:12} {'prompts of its own' if own_prompts else 'the same prompts':20} {shown:24} {ratio:.3f} x", flush=True)


if __name__ == "__main__":
    main()
