"""How fast training reads packed rows, beside litdata and mosaicml-streaming, and how well the order mixes.

    ./dev bench chunk_reading
    .venv/bin/python bench/chunk_reading_bench.py --rounds 3 --only rows,workers --json

The same made-up rows (ids by Zipf's law, 50,257 of them) for all. Every figure is the median over rounds in which the peers alternate, each in a
fresh process that reads all rows once to warm up and once for the clock; what stands beside a peer is the median of the rounds' ratios. Rates are by
wall time, of a whole pass and from its first tenth to its last batch (steady: without starting and ending workers, which take 0.05 to 0.1 s of a pass
of a few tenths), and by CPU time of the process and its workers: on a busy machine the latter is what can be compared. Peers give back rows one by one
as uint16, which is their quickest way; lmemo gives batches of 32 as int64. With workers all give batches, of 32 or more rows.

Peers decompress a file once and keep it plain on disk, at two bytes a token; with compression they are measured in the pass that does so, as in every epoch
of a corpus that is larger than their cache. Their second pass is the line without compression.

The peers are installed beside everything else, without what they would pull in (CUDA, torchvision), into build/bench-peers.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "support"))

from chunk_peers import import_peers, need_peers  # noqa: E402

DATA = ROOT / "build" / "bench-data" / "chunk-reading"
PROGRAM = ROOT / "build" / "dev" / "tests" / "programs" / "make_chunk_set"
ROWS_BATCH = 32
BATCHES = (32, 128, 256)  # With workers.
TOKENS = 80_000_000  # About, in each set.
OURS = ("lmemo", "torch", "context")
PEERS = ("litdata", "mds")
Rounds = dict[str, list[dict[str, float]]]  # What each round measured, by name.
Batches = Callable[[], Iterator[Any]]


# ------------------------------------------------------------------------------------------------------------- data


def chunk_set(length: int, compression: str) -> Path:
    directory = DATA / f"lmemo-{length}-{compression}"
    if not directory.exists():
        part = directory.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PROGRAM, part, "4", str(TOKENS // 4 // 200), "400", str(length), "50257", compression], check=True)
        part.rename(directory)
    return directory


def many_chunks() -> Path:
    directory = DATA / "lmemo-10000-chunks"
    if not directory.exists():
        part = directory.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PROGRAM, part, "10000", "20", "400", "512", "50257", "zstd"], check=True)
        part.rename(directory)
    return directory


def peer_rows(length: int) -> Any:
    import lmemo

    chunks = lmemo.ChunkSet(chunk_set(length, "none"))
    return chunks.batch(range(len(chunks))).input_ids.astype("uint16")


def litdata_set(length: int, compression: str) -> Path:
    directory = DATA / f"litdata-{length}-{compression}"
    if not directory.exists():
        import torch
        from litdata import TokensLoader
        from litdata.streaming.cache import Cache

        part = directory.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        more = {} if compression == "none" else {"compression": "zstd", "compression_level": "chunk"}
        cache = Cache(str(part), chunk_bytes="16MB", item_loader=TokensLoader(block_size=length), **more)
        for index, row in enumerate(peer_rows(length)):
            cache[index] = torch.from_numpy(row)
        cache.done()
        cache.merge(1)
        part.rename(directory)
    return directory


def mds_set(length: int, compression: str) -> Path:
    directory = DATA / f"mds-{length}-{compression}"
    if not directory.exists():
        from streaming import MDSWriter

        part = directory.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        with MDSWriter(
            out=str(part), columns={"tokens": f"ndarray:uint16:{length}"}, compression=None if compression == "none" else "zstd", size_limit=1 << 24
        ) as writer:
            for row in peer_rows(length):
                writer.write({"tokens": row})
        part.rename(directory)
    return directory


# --------------------------------------------------------------------------------------------- what a process measures


def compressed_again(directory: Path) -> Path:
    """Links to the compressed files. litdata replaces each by what it held, mds puts that beside it: a second pass decompresses nothing."""
    scratch = directory.with_name(f"{directory.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    for file in directory.iterdir():
        os.link(file, scratch / file.name)
    return scratch


def lmemo_loader(length: int, compression: str, shuffle: bool | str, workers: int, columns: int, batch: int) -> Batches:
    from lmemo.torch import COLUMNS, ChunkDataset, ChunkLoader

    names = COLUMNS if columns > 1 else ("input_ids",)
    loader = ChunkLoader(ChunkDataset(chunk_set(length, compression), shuffle=shuffle, columns=names, threads=0), batch, num_workers=workers)
    return lambda: (batch["input_ids"] for batch in loader)


def torch_loader(length: int, compression: str, shuffle: bool | str, workers: int, batch: int, is_light: bool = False) -> Batches:
    """lmemo's rows by torch's own DataLoader, whose workers are processes; is_light: with lmemo's way between processes."""
    from torch.utils.data import DataLoader

    from lmemo.torch import ChunkDataset, worker_context

    dataset = ChunkDataset(chunk_set(length, compression), shuffle=shuffle, columns=("input_ids",))
    more = {"multiprocessing_context": worker_context()} if is_light else {}
    loader = DataLoader(dataset, batch_size=batch, num_workers=workers, collate_fn=dataset.collate, **more)
    return lambda: (batch["input_ids"] for batch in loader)


def context_loader(length: int, compression: str, shuffle: bool | str, workers: int, batch: int) -> Batches:
    return torch_loader(length, compression, shuffle, workers, batch, is_light=True)


def litdata_loader(length: int, compression: str, shuffle: bool, workers: int, batch: int) -> Batches:
    import_peers()
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    directory = litdata_set(length, compression)
    if compression != "none":
        directory = compressed_again(directory)
    dataset = StreamingDataset(str(directory), item_loader=TokensLoader(block_size=length), shuffle=shuffle)
    if workers == 0:
        return lambda: iter(dataset)
    loader = StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)
    return lambda: iter(loader)


def mds_loader(length: int, compression: str, shuffle: bool, workers: int, batch: int) -> Batches:
    import_peers()
    import torch
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    directory = mds_set(length, compression)
    if compression != "none":
        directory = compressed_again(directory)
    dataset = StreamingDataset(local=str(directory), shuffle=shuffle, batch_size=batch)
    if workers == 0:
        return lambda: (torch.from_numpy(row["tokens"]) for row in dataset)
    loader = DataLoader(dataset, batch_size=batch, num_workers=workers)
    return lambda: (batch["tokens"] for batch in loader)


def measure(name: str) -> dict[str, float]:
    """One pass over all rows, in million tokens a second: by wall time, by CPU time, and by wall time without its first tenth."""
    who, length, compression, shuffle, workers, columns, rows = name.split("/")
    import torch

    torch.set_num_threads(1)
    wanted: bool | str = {"shuffled": True, "sequential": False, "exact": "exact"}[shuffle]

    def loader(compression: str) -> Batches:
        if who == "lmemo":
            return lmemo_loader(int(length), compression, wanted, int(workers), int(columns), int(rows))
        loaders = {"torch": torch_loader, "context": context_loader, "litdata": litdata_loader, "mds": mds_loader}
        return loaders[who](int(length), compression, bool(wanted), int(workers), int(rows))

    # Where a pass leaves nothing behind, the first one is for warming up. Else files were read when they were linked or made.
    read = loader(compression)
    if who in OURS or compression == "none":
        for _ in read():
            pass
    total = TOKENS
    wall, cpu = time.perf_counter(), cpu_seconds()
    tokens, steady, steady_from, last = 0, 0.0, 0, 0.0
    for batch in read():
        tokens += batch.numel()
        last = time.perf_counter()
        if not steady_from and tokens > total / 10:
            steady, steady_from = last, tokens
    end = time.perf_counter()  # Workers have ended.
    return {
        "wall": tokens / (end - wall) / 1e6,
        "cpu": tokens / (cpu_seconds() - cpu) / 1e6,
        "steady": (tokens - steady_from) / (last - steady) / 1e6,
    }


def cpu_seconds() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def in_rounds(names: list[str], rounds: int) -> Rounds:
    found: Rounds = {name: [] for name in names}
    for _ in range(rounds):
        measured = {}
        for name in names:
            done = subprocess.run([sys.executable, __file__, "--measure", name], capture_output=True, text=True)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'failed'}", file=sys.stderr)
                break
            measured[name] = json.loads(done.stdout.strip().splitlines()[-1])
        else:  # Half a round compares nothing.
            for name, rates in measured.items():
                found[name].append(rates)
    return found


def median_of(found: Rounds, name: str, unit: str) -> float:
    return statistics.median([rates[unit] for rates in found[name]] or [float("nan")])


def times_best_peer(found: Rounds, name: str, unit: str) -> float:
    """The median of the rounds' ratios to the peer that was best in that round."""
    peers = [rounds for other, rounds in found.items() if other.startswith(PEERS)]
    best = [max(rates[unit] for rates in one) for one in zip(*peers, strict=True)]
    return statistics.median([ours[unit] / peer for ours, peer in zip(found[name], best, strict=True)] or [float("nan")])


# ------------------------------------------------------------------------------------------------------------ tables


def bar(name: str, figure: float, at_least: float, unit: str = "x") -> None:
    print(f"    {name:74} {figure:7.2f} {unit}   bar: at least {at_least:g}   {'yes' if figure >= at_least else 'NO'}", flush=True)


def print_rates(found: Rounds) -> None:
    for name in found:
        print(f"  {name:40} {median_of(found, name, 'wall'):8.0f} {median_of(found, name, 'steady'):8.0f} {median_of(found, name, 'cpu'):8.0f}", flush=True)


def rows_table(rounds: int) -> Rounds:
    results: Rounds = {}
    print("\nShuffled rows to torch tensors, one process, no threads of ours (Mtok/s by wall; without the first tenth; per CPU second)")
    for length in (512, 2048):
        for compression in ("none", "zstd"):
            names = [f"{who}/{length}/{compression}/shuffled/0/1/32" for who in ("lmemo", *PEERS)]
            names += [f"lmemo/{length}/{compression}/sequential/0/1/32", f"lmemo/{length}/{compression}/shuffled/0/4/32"]
            found = in_rounds(names, rounds)
            results.update(found)
            print_rates(found)
            for unit in ("wall", "cpu"):
                bar(f"against the best peer, {length}, {compression}, {unit}", times_best_peer(found, names[0], unit), 2)
            bar(f"of sequential, {length}, {compression}", 100 * median_of(found, names[0], "cpu") / median_of(found, names[3], "cpu"), 70, "%")
    return results


def workers_table(rounds: int) -> Rounds:
    results: Rounds = {}
    print("\nShuffled, two workers (Mtok/s by wall; without the first tenth; per CPU second); the last number is the batch size")
    ways = {"lmemo": "ChunkLoader", "torch": "torch's DataLoader", "context": "torch's DataLoader, worker_context()"}
    for length in (512, 2048):
        for batch in BATCHES:
            names = {who: f"{who}/{length}/zstd/shuffled/2/1/{batch}" for who in (*ways, *PEERS)}
            found = in_rounds(list(names.values()), rounds)
            results.update(found)
            print_rates(found)
            for who, way in ways.items():
                for unit in ("wall", "steady", "cpu"):
                    bar(f"{way}, against the best peer, {length} x {batch}, {unit}", times_best_peer(found, names[who], unit), 10)
    return results


def first_batch_table(rounds: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    code = "import lmemo; lmemo.ChunkSet({!r}).batch(range(32)).buffer"
    print("\nProcess start to the first batch, without torch (ms; wall, CPU)")
    for name, directory, limit in (("4 chunks", chunk_set(512, "zstd"), 150), ("10,000 chunks", many_chunks(), 300)):
        walls, cpus = [], []
        for _ in range(max(5, rounds * 3)):
            wall, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code.format(str(directory))], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            walls.append((time.perf_counter() - wall) * 1000)
            cpus.append((after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime) * 1000)
        results[name] = {"wall": statistics.median(walls), "cpu": statistics.median(cpus)}
        met = "yes" if statistics.median(walls) <= limit else "NO"
        print(f"  {name:34} {statistics.median(walls):8.0f} {statistics.median(cpus):8.0f}   bar: at most {limit}   {met}", flush=True)
    return results


def mixing_table() -> dict[str, Any]:
    """A million rows in chunks of 8,000 at 512 tokens: how far is the order from the one on disk, and from a random one?"""
    import numpy

    from lmemo._core import RowOrder

    count, block = 1_000_000, 512  # As zstd has them; windows of 8 million tokens.
    chunks = [8000] * (count // 8000)
    print("\nHow well it mixes: 1,000,000 rows, blocks of 512 (a random order: correlation 0, distance 333,333, 32 of 32 blocks)")
    results = {}
    for kind in ("sequential", "windows", "exact"):
        order = numpy.array(RowOrder.make(chunks, kind, 1, 0, block, 32, 16, [], []).rows_at(0, 1, count), dtype=numpy.int64)
        correlation = float(numpy.corrcoef(order, numpy.arange(count))[0, 1])
        distance = float(numpy.abs(numpy.diff(order)).mean())
        batches = order[: count // 32 * 32].reshape(-1, 32) // block
        blocks = float(numpy.mean([len(set(batch)) for batch in batches[::37].tolist()]))
        neighbours = float(numpy.mean(numpy.abs(numpy.diff(order)) == 1))
        results[kind] = {"correlation": correlation, "distance": distance, "blocks_in_batch": blocks, "neighbours": neighbours}
        print(f"  {kind:12} rank correlation {correlation:+.4f}   distance of neighbours {distance:9,.0f}   blocks in a batch of 32: {blocks:4.1f}   still neighbours {neighbours:.3%}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="first,rows,workers,mixing")
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    need_peers()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results: dict[str, Any] = {}
    for name, table in (("first", first_batch_table), ("rows", rows_table), ("workers", workers_table)):
        if name in options.only.split(","):
            results[name] = table(1 if options.quick else options.rounds)
    if "mixing" in options.only.split(","):
        results["mixing"] = mixing_table()
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
