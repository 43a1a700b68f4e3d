"""How fast the forward cache is, beside an OrderedDict with a lock and SHA-1, functools.lru_cache, cachetools and lm-eval's SQLite cache.

    ./dev bench forward
    .venv/bin/python bench/forward_python_bench.py --rounds 15 --json

Every figure is the median over rounds in which the peers alternate; a ratio is the median of the ratios of the rounds. Hits in memory, which
wait for nobody, are measured in CPU time of the calling threads, so that a busy machine counts against none of the peers; everything else in wall time.
The prompts have 200 bytes; all 256 are in every cache. What each peer does for a hit:

lmemo               BackendInstrumentation.cached(op, view_id, prompt, top_k, compute): counters and wall time included
OrderedDict         the same in plain Python: SHA-1 of the prompt, a locked OrderedDict, two reads of the clock, counters, and, when tracing,
                    a dict, json.dumps and a flush per event
functools.lru_cache a function of (op, view_id, prompt, top_k): no counters of one's own, no time, no single flight
cachetools          cachetools.cached(LRUCache, lock=Lock()) around the same function
lm-eval             what lm_eval.api.model.CachingLM does: SHA-256 of the JSON of the request, `in`, then [] of its SqliteDict

Tracing: what it adds to the caller's lookup. The lines are written by another thread meanwhile, and all of them are in the file before the next
round starts.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cachetools
from lm_eval.api.model import hash_args
from sqlitedict import SqliteDict

import lmemo
from lmemo.forward import BackendInstrumentation

PROMPTS = [f"{n:05} " + "x" * 194 for n in range(256)]
OP, VIEW, TOP_K = "next_token_dist", "base", 256
LOOPS = 4  # Over all prompts, per round and peer: short, so that most rounds are not interrupted.
TRACED_LOOPS = 20
PERSISTENT_ENTRIES = 20_000
COLD_ENTRIES = 100_000


def never(*_: Any) -> Any:
    raise LookupError("everything was computed before")


class PlainPython:
    """The design that lmemo.forward stands in for, in its own words."""

    def __init__(self, trace: Path | None = None) -> None:
        self.entries: OrderedDict[tuple[str, str, str, int], Any] = OrderedDict()
        self.lock = threading.Lock()
        self.hits = self.misses = 0
        self.wall_seconds = 0.0
        self.file = None if trace is None else open(trace, "a", encoding="utf-8")

    def get(self, key: tuple[str, str, str, int]) -> Any:
        with self.lock:
            value = self.entries[key]
            self.entries.move_to_end(key)
            return value

    def note(self, view_id: str, prompt_hash: str, top_k: int, op: str, wall: float) -> None:
        self.hits += 1
        self.wall_seconds += wall
        if self.file is None:
            return
        event = {"ts": time.time(), "probe": None, "view_id": view_id, "prompt_hash": prompt_hash, "top_k": top_k, "op": op,
                 "wall_ms": wall * 1000, "hit": True}  # fmt: skip
        with self.lock:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()

    def cached(self, op: str, view_id: str, prompt: str, top_k: int, compute: Callable[[], Any]) -> Any:
        prompt_hash = hashlib.sha1(prompt.encode("utf-8"), usedforsecurity=False).hexdigest()[:12]
        start = time.perf_counter()
        try:
            value = self.get((op, view_id, prompt_hash, top_k))
        except KeyError:
            value = compute()
            with self.lock:
                self.entries[op, view_id, prompt_hash, top_k] = value
            self.misses += 1
            return value
        self.note(view_id, prompt_hash, top_k, op, time.perf_counter() - start)
        return value

    def cached_batch(self, op: str, view_id: str, prompts: list[str], top_k: int) -> list[Any]:
        hashes = [hashlib.sha1(prompt.encode("utf-8"), usedforsecurity=False).hexdigest()[:12] for prompt in prompts]
        results = []
        for prompt_hash in hashes:
            start = time.perf_counter()
            results.append(self.get((op, view_id, prompt_hash, top_k)))
            self.note(view_id, prompt_hash, top_k, op, time.perf_counter() - start)
        return results


def filled(cache: Any) -> Any:
    for prompt in PROMPTS:
        cache.cached(OP, VIEW, prompt, TOP_K, lambda: (1.0, True))
    return cache


def seconds_per_call(call: Callable[..., Any], loops: int = LOOPS) -> float:
    """Per lookup, with all five arguments, as users write it."""
    prompts = PROMPTS
    start = time.thread_time()
    for _ in range(loops):
        for prompt in prompts:
            call("next_token_dist", "base", prompt, 256, never)
    return (time.thread_time() - start) / (loops * len(prompts))


def seconds_per_plain_call(call: Callable[..., Any], loops: int = LOOPS) -> float:
    """The same for a cached function of four arguments."""
    prompts = PROMPTS
    start = time.thread_time()
    for _ in range(loops):
        for prompt in prompts:
            call("next_token_dist", "base", prompt, 256)
    return (time.thread_time() - start) / (loops * len(prompts))


def rounds_of(rounds: int, measures: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in measures}
    names = list(measures)
    for number in range(-1, rounds):  # Round -1 warms up.
        turn = number % len(names)  # Nobody always goes first.
        for name in names[turn:] + names[:turn]:
            taken = measures[name]()
            if number >= 0:
                samples[name].append(taken)
    return samples


def median_ratio(slow: list[float], fast: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slow, fast))


def nanoseconds(samples: dict[str, list[float]], *names: str) -> str:
    return "; ".join(f"{name} {statistics.median(samples[name]) * 1e9:.0f} ns" for name in names)


def line(measure: str, result: str, figure: float, unit: str = "x", at_least: float | None = None, at_most: float | None = None) -> dict[str, Any]:
    met = None if at_least is None and at_most is None else figure >= (at_least or 0) and figure <= (at_most or float("inf"))
    return {"measure": measure, "result": result, "figure": figure, "unit": unit, "at_least": at_least, "at_most": at_most, "met": met}


def measure_hits(rounds: int) -> Iterator[dict[str, Any]]:
    inst, plain = filled(BackendInstrumentation()), filled(PlainPython())

    def four(op: str, view_id: str, prompt: str, top_k: int) -> Any:
        return (1.0, True)

    lru = functools.lru_cache(maxsize=256)(four)
    tools = cachetools.cached(cachetools.LRUCache(256), lock=threading.Lock())(four)
    samples = rounds_of(
        rounds,
        {
            "lmemo": lambda: seconds_per_call(inst.cached),
            "OrderedDict": lambda: seconds_per_call(plain.cached),
            "lru_cache": lambda: seconds_per_plain_call(lru),
            "cachetools": lambda: seconds_per_plain_call(tools),
        },
    )
    shown = nanoseconds(samples, "lmemo", "OrderedDict", "lru_cache", "cachetools")
    yield line("hit, against OrderedDict", shown, median_ratio(samples["OrderedDict"], samples["lmemo"]), at_least=10)
    yield line("hit, over functools.lru_cache's time", shown, median_ratio(samples["lmemo"], samples["lru_cache"]), at_most=1.5)
    yield line("hit, against cachetools", shown, median_ratio(samples["cachetools"], samples["lmemo"]))


def measure_batches(rounds: int) -> Iterator[dict[str, Any]]:
    inst, plain = filled(BackendInstrumentation()), filled(PlainPython())

    def time_of(call: Callable[[], Any]) -> float:
        start = time.thread_time()
        for _ in range(LOOPS):
            call()
        return (time.thread_time() - start) / (LOOPS * len(PROMPTS))

    samples = rounds_of(
        rounds,
        {
            "lmemo": lambda: time_of(lambda: inst.cached_batch(OP, VIEW, PROMPTS, TOP_K, never)),
            "OrderedDict": lambda: time_of(lambda: plain.cached_batch(OP, VIEW, PROMPTS, TOP_K)),
        },
    )
    ratio = median_ratio(samples["OrderedDict"], samples["lmemo"])
    yield line("batch of 256 hits, per prompt, against OrderedDict", nanoseconds(samples, "lmemo", "OrderedDict"), ratio, at_least=15)


def measure_traces(rounds: int, scratch: Path) -> Iterator[dict[str, Any]]:
    off, on = filled(BackendInstrumentation()), filled(BackendInstrumentation(trace_path=scratch / "lmemo.jsonl"))
    plain_off, plain_on = filled(PlainPython()), filled(PlainPython(scratch / "plain.jsonl"))

    def traced() -> float:
        taken = seconds_per_call(on.cached, TRACED_LOOPS)
        on.trace.flush()
        return taken

    samples = rounds_of(
        rounds,
        {
            "lmemo": lambda: seconds_per_call(off.cached, TRACED_LOOPS),
            "lmemo traced": traced,
            "OrderedDict": lambda: seconds_per_call(plain_off.cached),
            "OrderedDict traced": lambda: seconds_per_call(plain_on.cached, 2),
        },
    )
    added = [a - b for a, b in zip(samples["lmemo traced"], samples["lmemo"])]
    plain_added = [a - b for a, b in zip(samples["OrderedDict traced"], samples["OrderedDict"])]
    on.close()
    lines = sum(1 for _ in open(scratch / "lmemo.jsonl", "rb"))
    assert lines == on.stats.total_lookups, (lines, on.stats)
    yield line("trace on: added per lookup", nanoseconds(samples, "lmemo", "lmemo traced"), statistics.median(added) * 1e9, "ns", at_most=300)
    yield line(
        "the same, against a dict, json and a flush per event",
        f"lmemo {statistics.median(added) * 1e9:.0f} ns; OrderedDict {statistics.median(plain_added) * 1e9:.0f} ns",
        median_ratio(plain_added, [max(value, 1e-9) for value in added]),
        at_least=10,
    )


def measure_threads(rounds: int) -> Iterator[dict[str, Any]]:
    inst = filled(BackendInstrumentation())
    lru = functools.lru_cache(maxsize=256)(lambda op, view_id, prompt, top_k: (1.0, True))
    loops = 6000  # Long enough that starting threads does not count, and that the GIL is handed over many times.
    walls: dict[str, list[float]] = {"1 thread": [], "4 threads": [], "lru_cache by 1": [], "by 4": [], "callable() by 1": [], "by 4 too": []}

    def time_of(name: str, threads: int, ask: Callable[[int], float]) -> float:
        """CPU time of as many lookups by all threads together; the wall time from the first lookup to the last is noted."""
        barrier = threading.Barrier(threads + 1)
        taken: list[float] = []

        def work() -> None:
            barrier.wait()
            taken.append(ask(loops // threads) / threads)
            barrier.wait()

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        start = time.perf_counter()
        barrier.wait()
        walls[name].append((time.perf_counter() - start) / (loops * len(PROMPTS)))
        for worker in workers:
            worker.join()
        return sum(taken)

    def ours(loops: int) -> float:
        return seconds_per_call(inst.cached, loops)

    def theirs(loops: int) -> float:
        return seconds_per_plain_call(lru, loops)

    def nothing(loops: int) -> float:
        """callable() does next to nothing, in C: what is lost here is lost by whatever the threads call."""
        prompts, start = PROMPTS, time.thread_time()
        for _ in range(loops):
            for prompt in prompts:
                callable(prompt)
        return (time.thread_time() - start) / (loops * len(prompts))

    samples = rounds_of(
        rounds,
        {
            "1 thread": lambda: time_of("1 thread", 1, ours),
            "4 threads": lambda: time_of("4 threads", 4, ours),
            "lru_cache by 1": lambda: time_of("lru_cache by 1", 1, theirs),
            "by 4": lambda: time_of("by 4", 4, theirs),
            "callable() by 1": lambda: time_of("callable() by 1", 1, nothing),
            "by 4 too": lambda: time_of("by 4 too", 4, nothing),
        },
    )
    ratio = median_ratio(samples["1 thread"], samples["4 threads"])
    yield line("4 threads, CPU time of as many hits in total, against 1 thread", nanoseconds(samples, *walls), ratio)
    # By the clock, with the GIL, one thread runs at a time and 1 is all there is: handing it over every 5 ms costs 1 or 2 %, whatever the threads do.
    ratio, lru_ratio = median_ratio(walls["1 thread"], walls["4 threads"]), median_ratio(walls["lru_cache by 1"], walls["by 4"])
    yield line("4 threads by the clock, where the GIL is handed over, against 1 thread", nanoseconds(walls, *walls), ratio, at_least=1.0)
    yield line("functools.lru_cache by the clock", nanoseconds(walls, *walls), lru_ratio)
    yield line("a function that does nothing by the clock", nanoseconds(walls, *walls), median_ratio(walls["callable() by 1"], walls["by 4 too"]))


def requests(count: int) -> list[tuple[str, str]]:
    return [(f"{n:06} " + "x" * 170, f" answer {n % 4}") for n in range(count)]


def measure_persistent_hits(rounds: int, scratch: Path) -> Iterator[dict[str, Any]]:
    asked = requests(PERSISTENT_ENTRIES)
    with lmemo.Store(scratch / "store") as store, BackendInstrumentation(store=store) as inst:
        inst.cached_batch("loglikelihood", VIEW, asked, None, lambda missing: [(-float(n), True) for n in missing])
    with SqliteDict(str(scratch / "cache.db"), autocommit=False) as database:
        for n, request in enumerate(asked):
            database[hash_args("loglikelihood", request)] = (-float(n), True)
        database.commit()
    store = lmemo.Store(scratch / "store")
    database = SqliteDict(str(scratch / "cache.db"), autocommit=True)
    chosen = random.Random(3).sample(asked, 2000)

    def from_lmemo() -> float:
        inst = BackendInstrumentation(store=store, cache_maxsize=1)  # So that every hit comes from the store.
        start = time.perf_counter()
        for request in chosen:
            inst.cached("loglikelihood", "base", request, None, never)
        taken = time.perf_counter() - start
        assert inst.stats.store_hits == len(chosen)
        return taken / len(chosen)

    def from_sqlite() -> float:
        some = chosen[:200]
        start = time.perf_counter()
        for request in some:
            key = hash_args("loglikelihood", request)
            if key in database:
                database[key]
            else:
                never()
        return (time.perf_counter() - start) / len(some)

    samples = rounds_of(rounds, {"lmemo": from_lmemo, "lm-eval": from_sqlite})
    store.close()
    database.close()
    yield line(
        "persistent hit, against SQLite and pickle as lm-eval has them",
        nanoseconds(samples, "lmemo", "lm-eval"),
        median_ratio(samples["lm-eval"], samples["lmemo"]),
        at_least=50,
    )


def measure_cold_open(rounds: int, scratch: Path) -> Iterator[dict[str, Any]]:
    asked = requests(COLD_ENTRIES)
    with lmemo.Store(scratch / "cold") as store, BackendInstrumentation(store=store) as inst:
        inst.cached_batch("loglikelihood", VIEW, asked, None, lambda missing: [(-float(n), True) for n in missing])

    cpu_samples = []

    def cold() -> float:
        start, cpu_start = time.perf_counter(), time.process_time()
        with lmemo.Store(scratch / "cold") as store:
            inst = BackendInstrumentation(store=store)
            assert inst.cached("loglikelihood", VIEW, asked[77], None, never) == (-77.0, True)
            cpu_samples.append(time.process_time() - cpu_start)
            return time.perf_counter() - start

    samples = rounds_of(rounds, {"lmemo": cold})
    milliseconds = statistics.median(samples["lmemo"]) * 1e3
    yield line("cold open to first hit, 100,000 entries", f"lmemo {milliseconds:.1f} ms, of which CPU {statistics.median(cpu_samples) * 1e3:.1f} ms", milliseconds, "ms", at_most=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--directory", type=Path, default=Path(os.environ.get("TMPDIR") or "build/bench-data"))
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(options.directory).free < 2 << 30:
        sys.exit(f"bench: needs 2 GiB of disk below {options.directory}")

    lines = []
    with tempfile.TemporaryDirectory(prefix="forward-bench-", dir=options.directory) as name:
        scratch = Path(name)
        for measures in (
            measure_hits(options.rounds),
            measure_batches(options.rounds),
            measure_traces(options.rounds, scratch),
            measure_threads(max(3, options.rounds // 4)),
            measure_persistent_hits(options.rounds, scratch),
            measure_cold_open(options.rounds, scratch),
        ):
            for measured in measures:
                lines.append(measured)
                if options.json:
                    continue
                bar = f"at least {measured['at_least']:g}" if measured["at_least"] is not None else ""
                bar = f"at most {measured['at_most']:g}" if measured["at_most"] is not None else bar
                met = {None: "", True: "yes", False: "**no**"}[measured["met"]]
                print(f"| {measured['measure']} | {measured['result']} | {measured['figure']:.2f} {measured['unit']} | {bar} | {met} |", flush=True)
    if options.json:
        print(json.dumps({"version": 1, "measures": lines}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
