"""How fast the store is from Python, beside diskcache and lmdb's binding, on the same data in one run.

    ./dev bench store_python
    .venv/bin/python bench/store_python_bench.py --rounds 9 --json

Every figure is the median over rounds in which the peers alternate. Each peer in its best reasonable shape:
diskcache without culling, statistics and eviction bookkeeping; its puts in transactions of 1,000 with
`synchronous=FULL` (its default, NORMAL, does not survive a power cut); lmdb with one read transaction kept open and buffers
instead of copies. Finding means: until the caller holds the value (a view for lmemo and lmdb, bytes for diskcache).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import lmdb

import lmemo

ENTRIES_PER_FLUSH = 1_000
FINDS_PER_ROUND = 20_000


class Data:
    """Keys with realistic fields and values cut from one pool of random bytes."""

    def __init__(self, count: int, min_bytes: int, max_bytes: int) -> None:
        chance = random.Random(count)
        pool = chance.randbytes(1 << 24)
        self.keys = [lmemo.Key.of("tokens", section=str(i), tokenizer="gpt2@a1b2c3d4") for i in range(count)]
        self.values = []
        for _ in range(count):
            start = chance.randrange(len(pool) - max_bytes)
            self.values.append(pool[start : start + chance.randint(min_bytes, max_bytes)])
        self.digests = [bytes.fromhex(key.hex) if hasattr(key, "hex") else bytes(key.digest) for key in self.keys]
        self.byte_count = sum(map(len, self.values))

    def lots(self) -> Iterator[range]:
        for first in range(0, len(self.keys), ENTRIES_PER_FLUSH):
            yield range(first, min(first + ENTRIES_PER_FLUSH, len(self.keys)))


class Lmemo:
    name = "lmemo"

    def __init__(self, directory: Path) -> None:
        self.store = lmemo.Store(directory, max_bytes=0)

    def put(self, data: Data) -> None:
        for lot in data.lots():
            self.store.put_many((data.keys[i], data.values[i]) for i in lot)
            self.store.flush()

    def find(self, data: Data, order: list[int]) -> int:
        find = self.store.find
        keys = [data.keys[i] for i in order]
        start = time.perf_counter()
        for key in keys:
            if find(key) is None:
                raise LookupError(key)
        return time.perf_counter() - start

    def close(self) -> None:
        self.store.close()


class DiskCache:
    name = "diskcache"

    def __init__(self, directory: Path) -> None:
        self.cache = diskcache.Cache(
            str(directory), size_limit=1 << 40, cull_limit=0, eviction_policy="none", statistics=False, sqlite_synchronous=2
        )

    def put(self, data: Data) -> None:
        for lot in data.lots():
            with self.cache.transact():
                for i in lot:
                    self.cache.set(data.digests[i], data.values[i])

    def find(self, data: Data, order: list[int]) -> float:
        get = self.cache.get
        digests = [data.digests[i] for i in order]
        start = time.perf_counter()
        for digest in digests:
            if get(digest) is None:
                raise LookupError(digest)
        return time.perf_counter() - start

    def close(self) -> None:
        self.cache.close()


class Lmdb:
    name = "lmdb"

    def __init__(self, directory: Path) -> None:
        self.environment = lmdb.open(str(directory), map_size=1 << 36, readahead=False)

    def put(self, data: Data) -> None:
        for lot in data.lots():
            with self.environment.begin(write=True) as transaction:
                for i in lot:
                    transaction.put(data.digests[i], data.values[i])

    def find(self, data: Data, order: list[int]) -> float:
        digests = [data.digests[i] for i in order]
        with self.environment.begin(buffers=True) as transaction:
            get = transaction.get
            start = time.perf_counter()
            for digest in digests:
                if get(digest) is None:
                    raise LookupError(digest)
            return time.perf_counter() - start

    def close(self) -> None:
        self.environment.close()


PEERS: list[Callable[[Path], Any]] = [Lmemo, DiskCache, Lmdb]


def median_ratio(slow: list[float], fast: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slow, fast))


def measure_finds(data: Data, name: str, scratch: Path, rounds: int) -> Iterator[dict[str, Any]]:
    order = random.Random(7).sample(range(len(data.keys)), min(FINDS_PER_ROUND, len(data.keys)))
    peers = [make(scratch / f"find-{make.name}") for make in PEERS]
    for peer in peers:
        peer.put(data)
    samples: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for round_number in range(-1, rounds):  # Round -1 warms up.
        for peer in peers:
            seconds = peer.find(data, order)
            if round_number >= 0:
                samples[peer.name].append(seconds / len(order))
    for peer in peers:
        peer.close()
        shutil.rmtree(scratch / f"find-{peer.name}")
    for other, bar in (("diskcache", 20), ("lmdb", None)):
        yield {
            "measure": f"find from Python, default checks, against {other}",
            "data": name,
            "result": f"lmemo {statistics.median(samples['lmemo']) * 1e6:.2f} µs; "
            f"{other} {statistics.median(samples[other]) * 1e6:.2f} µs",
            "figure": median_ratio(samples[other], samples["lmemo"]),
            "at_least": bar,
        }


def measure_puts(data: Data, name: str, scratch: Path, rounds: int) -> Iterator[dict[str, Any]]:
    samples: dict[str, list[float]] = {make.name: [] for make in PEERS}
    for round_number in range(rounds):
        turn = round_number % len(PEERS)  # Nobody always goes first.
        for make in PEERS[turn:] + PEERS[:turn]:
            directory = scratch / f"put-{make.name}"
            peer = make(directory)
            os.sync()  # What others left to write is not this one's to wait for.
            start = time.perf_counter()
            peer.put(data)
            samples[make.name].append(time.perf_counter() - start)
            peer.close()
            shutil.rmtree(directory)
    for other, bar in (("diskcache", 5), ("lmdb", None)):
        yield {
            "measure": f"durable bulk put from Python, against {other}",
            "data": name,
            "result": f"lmemo {data.byte_count / statistics.median(samples['lmemo']) / 1e6:.0f} MB/s; "
            f"{other} {data.byte_count / statistics.median(samples[other]) / 1e6:.0f} MB/s",
            "figure": median_ratio(samples[other], samples["lmemo"]),
            "at_least": bar,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--directory", type=Path, default=Path(os.environ.get("TMPDIR") or "build/bench-data"))
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(options.directory).free
    if free_bytes < 6 << 30:
        sys.exit(f"bench: needs 6 GiB of disk below {options.directory}, there are {free_bytes >> 30} free")

    lines = []
    with tempfile.TemporaryDirectory(prefix="store-python-bench-", dir=options.directory) as scratch:
        medium, small = Data(50_000, 4_000, 20_000), Data(50_000, 200, 200)
        few = Data(5_000, 4_000, 20_000)
        for measures in (
            measure_finds(medium, "50,000 of 4–20 KB", Path(scratch), options.rounds),
            measure_finds(small, "50,000 of 200 B", Path(scratch), options.rounds),
            measure_puts(few, "5,000 of 4–20 KB", Path(scratch), options.rounds),
        ):
            for line in measures:
                line["met"] = None if line["at_least"] is None else line["figure"] >= line["at_least"]
                lines.append(line)
                if options.json:
                    continue
                bar = "" if line["at_least"] is None else f"at least {line['at_least']}"
                met = {None: "", True: "yes", False: "**no**"}[line["met"]]
                print(f"| {line['measure']} | {line['data']} | {line['result']} | {line['figure']:.2f} x | {bar} | {met} |", flush=True)
    if options.json:
        print(json.dumps({"version": 1, "measures": lines}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
