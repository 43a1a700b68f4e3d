"""`lmemo chunks` beside HuggingFace datasets with TRL, mosaicml-streaming, litdata, megatron-core and datatrove.

    ./dev bench chunks
    .venv/bin/python bench/chunks_bench.py --quick --only build,ids,sizes,verify,scan,repair --json

One corpus for all: Python, C headers, manual pages and documentation of this machine, mixed, as JSON lines; GPT-2's vocabulary; rows of 512; two
workers. Medians over rounds in which all alternate, each in a fresh process. lmemo's time is that of two commands, `build` and `verify`, from start to
end; that of the others begins after their imports. What the others write is neither compressed nor checksummed, but for two lines.

build   JSON lines to finished, verified chunks
ids     ids that are there already: pack, compress, checksum, write; CPU time of one thread
sizes   bytes a token and decoding, by codec and level
verify  GB a second and core
scan    `show` of a set of 100,000 chunks
repair  one damaged chunk
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "support"), str(ROOT / "python" / "tests")]

import chunk_peers  # noqa: E402
import tokenizer_vocabularies  # noqa: E402
from tokenizer_bench import text_of  # noqa: E402

DATA = ROOT / "build" / "bench-data" / "chunks"
LMEMO = [sys.executable, "-m", "lmemo", "chunks"]
MAKE_SET = ROOT / "build" / "dev" / "tests" / "programs" / "make_chunk_set"


class Report:
    """Lines with their bars, for people as they come and for machines at the end."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def note(self, name: str, figure: float, unit: str, bar: float | None = None, at_most: bool = False) -> None:
        met = None if bar is None else (figure <= bar if at_most else figure >= bar)
        self.lines.append({"name": name, "figure": figure, "unit": unit, "bar": bar, "at_most": at_most, "met": met})
        told = "" if bar is None else f"   bar: at {'most' if at_most else 'least'} {bar:g}   {'yes' if met else 'NO'}"
        print(f"  {name:64} {figure:10.3f} {unit:22}{told}", flush=True)


# ------------------------------------------------------------------------------------------------------------ data


def mixed_files() -> Iterator[Path]:
    """Files of four kinds in turns."""
    folders = [(Path(os.__file__).parent, "*.py"), (Path("/usr/include"), "*.h"), (Path("/usr/share/man"), "*.gz"), (Path("/usr/share/doc"), "*.gz")]
    folders += [(Path("/usr/share/doc"), "*.txt"), (Path("/usr/share/doc"), "*.html"), (ROOT / "examples" / "corpus", "*.txt")]
    kinds = [iter(sorted(folder.rglob(pattern))) for folder, pattern in folders]
    while kinds:
        for kind in list(kinds):
            found = next(kind, None)
            if found is None:
                kinds.remove(kind)
            else:
                yield found


def corpus(megabytes: int) -> Path:
    path = DATA / f"mixed-{megabytes}.jsonl"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        part, seen, total = path.with_suffix(f".{os.getpid()}"), set(), 0
        with part.open("w") as file:
            for name in mixed_files():
                text = text_of(name)
                if text is None or hash(text) in seen or len(text) > 1 << 20:
                    continue
                seen.add(hash(text))
                total += file.write(json.dumps({"text": text}) + "\n")
                if total > megabytes << 20:
                    break
        part.rename(path)
    return path


def tokenizer() -> Path:
    path = DATA / "tokenizer.json"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        path.write_text(tokenizer_vocabularies.json_of("gpt2"))
    return path


def ids_of(jsonl: Path) -> Path:
    """All ids, two bytes each, 50256 behind each document."""
    path = jsonl.with_suffix(".u16")
    if not path.exists():
        import numpy

        import lmemo

        encoder = lmemo.Tokenizer.from_file(tokenizer())
        with path.with_suffix(".part").open("wb") as file:
            for line in jsonl.open():
                numpy.array([*encoder.encode(json.loads(line)["text"]), 50256], numpy.uint16).tofile(file)
        path.with_suffix(".part").rename(path)
    return path


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command(*words: object) -> dict[str, Any]:
    """A command of lmemo: what it reports, and its seconds."""
    cpu, start = cpu_of_children(), time.perf_counter()
    ran = subprocess.run([*LMEMO, *map(str, words), "--json"], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if ran.returncode not in (0, 3):
        raise SystemExit(f"lmemo chunks {words[0]}: {ran.stderr}")
    return {**json.loads(ran.stdout), "wall": seconds, "cpu": cpu_of_children() - cpu}


def build(jsonl: Path, out: Path, *more: object) -> dict[str, Any]:
    return command("build", jsonl, "--tokenizer", tokenizer(), "--output", out, "--workers", 2, *more)


def peer(who: str, out: Path, *inputs: Path) -> dict[str, Any] | None:
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-W", "ignore", chunk_peers.__file__, who, str(out), *map(str, inputs)]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment)
    if ran.returncode:
        print(f"  {who}: {(ran.stderr.strip().splitlines() or ['failed'])[-1]}", file=sys.stderr)
        return None
    return dict(json.loads(ran.stdout.strip().splitlines()[-1]))


def in_rounds(contenders: dict[str, Callable[[Path], dict[str, Any] | None]], rounds: int, scratch: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for who, run in contenders.items():
            one = run(scratch / "out")
            shutil.rmtree(scratch / "out", ignore_errors=True)
            if one is not None:
                found.setdefault(who, []).append(one)
    return {who: sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2] for who, runs in found.items()}


# --------------------------------------------------------------------------------------------------------- measures


def measure_build(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    def ours(out: Path) -> dict[str, Any]:
        built = build(jsonl, out)
        checked = command("verify", out, "--workers", 2)
        return {"seconds": built["wall"] + checked["wall"], "cpu": built["cpu"] + checked["cpu"], "tokens": built["tokens"], "bytes": checked["bytes"]}

    contenders: dict[str, Callable[[Path], dict[str, Any] | None]] = {"lmemo": ours}
    for who in chunk_peers.BUILDERS:
        contenders[who] = lambda out, who=who: peer(who, out, jsonl, tokenizer())  # type: ignore[misc]
    print(f"\nJSON lines ({jsonl.stat().st_size >> 20} MiB) to finished, verified chunks, two workers")
    found = in_rounds(contenders, rounds, scratch)
    ours_found = found.pop("lmemo")
    report.note("lmemo, build and verify", ours_found["seconds"], f"s, {ours_found['cpu']:.2f} CPU")
    for who, one in found.items():
        report.note(who, one["seconds"], f"s, {one['cpu']:.2f} CPU, {one['tokens'] / 1e6:.1f} Mtok")
    ratios = {who: (one["seconds"] / ours_found["seconds"], one["cpu"] / ours_found["cpu"]) for who, one in found.items()}
    for place, unit in enumerate(("wall", "CPU")):
        if "datasets + TRL" in ratios:
            report.note(f"against datasets + TRL, {unit}", ratios["datasets + TRL"][place], "x", 15)
        others = [both[place] for who, both in ratios.items() if who != "datasets + TRL"]
        if others:
            report.note(f"against the next best, {unit}", min(others), "x", 10)


def coded_lines(ids: Path) -> dict[str, dict[str, float]]:
    """What bench/chunks_bench.cpp tells of each codec and level."""
    program = next((path for path in (ROOT / "build" / "bench" / "bench" / "chunks_bench", ROOT / "build" / "dev" / "bench" / "chunks_bench") if path.exists()))
    found = {}
    for line in subprocess.run([program, ids], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if "bytes/token" in words:
            found[f"{words[0]} {words[1]}"] = {"bytes": float(words[2]), "write": float(words[8]), "decode": float(words[10])}
    return found


def measure_ids(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    ids = ids_of(jsonl)
    writers: dict[str, Callable[[Path], dict[str, Any] | None]] = {}
    for who in chunk_peers.WRITERS:
        writers[who] = lambda out, who=who: peer(who, out, ids)  # type: ignore[misc]
    print("\nIds that are there already: pack, compress, checksum, write (million tokens a second of CPU time, one thread)")
    rates = {who: one["tokens"] / one["cpu"] / 1e6 for who, one in in_rounds(writers, max(rounds, 3), scratch).items()}
    for who, rate in rates.items():
        report.note(f"{who}, uncompressed", rate, "Mtok/s")
    for name, one in coded_lines(ids).items():
        if not name.endswith("max"):
            report.note(f"lmemo, {name}", one["write"], "Mtok/s")
            report.note(f"lmemo, {name}, against the fastest of them", one["write"] / max(rates.values()), "x", 1.5)


def measure_sizes(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    bars = {"lz4 default": (1.25, 1000), "zstd default": (0.95, 400), "zstd max": (0.80, 400), "lz4 fast": (1.25, 1000)}
    print("\nBytes a token, boundaries and checksums included, and decoding by one thread")
    for name, one in coded_lines(ids_of(jsonl)).items():
        size, rate = bars.get(name, (None, None))
        report.note(f"{name}: bytes a token", one["bytes"], "bytes", size, at_most=True)
        report.note(f"{name}: decoding", one["decode"], "Mtok/s CPU", rate)
    for who in chunk_peers.COMPRESSING:
        found = peer(who, scratch / "out", jsonl, tokenizer())
        shutil.rmtree(scratch / "out", ignore_errors=True)
        if found:
            report.note(f"{who}: bytes a token", found["bytes"] / found["tokens"], "bytes")


def measure_verify(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    print("\nverify, of a set of made-up ids")
    subprocess.run([MAKE_SET, scratch / "large", "8", "200000", "400", "512", "50257", "zstd"], check=True)
    runs = [command("verify", scratch / "large", "--workers", 1) for _ in range(max(3, rounds))]
    start = statistics.median(command("show", scratch / "large")["cpu"] for _ in range(3))
    gigabytes = runs[0]["checked_bytes"] / 1e9
    report.note("one thread, by CPU time, start of the program included", gigabytes / statistics.median(run["cpu"] for run in runs), "GB/s", 1)
    report.note("the same without the start", gigabytes / (statistics.median(run["cpu"] for run in runs) - start), "GB/s", 1)
    report.note("one thread, by the clock", gigabytes / statistics.median(run["wall"] for run in runs), "GB/s")
    two = statistics.median(command("verify", scratch / "large", "--workers", 2)["wall"] for _ in range(3))
    report.note("two threads, by the clock", gigabytes / two, "GB/s")
    shutil.rmtree(scratch / "large")


def measure_scan(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    chunks = 100_000 if rounds > 1 else 20_000  # They take two minutes to make.
    print(f"\nGap scan: show of {chunks:,} chunks, ten of them gone")
    subprocess.run([MAKE_SET, scratch / "many", str(chunks), "1", "8", "512", "50257", "none"], check=True)
    for number in range(0, chunks, chunks // 10):
        (scratch / "many" / "chunks" / f"{number:06d}.chunk").unlink()
    runs = [command("show", scratch / "many") for _ in range(max(3, rounds))]
    assert len(runs[0]["missing"]) == 10
    bar = chunks / 100_000
    report.note("show, by the clock", statistics.median(run["wall"] for run in runs), "s", bar, at_most=True)
    report.note("show, CPU", statistics.median(run["cpu"] for run in runs), "s", bar, at_most=True)
    shutil.rmtree(scratch / "many")


def measure_repair(report: Report, jsonl: Path, rounds: int, scratch: Path) -> None:
    print("\nOne damaged chunk")
    whole = build(jsonl, scratch / "set", "--chunk-sequences", 1000)
    chunk = scratch / "set" / "chunks" / f"{whole['total_chunks'] // 2:06d}.chunk"
    times: dict[str, list[float]] = {"fill": [], "repair": []}
    for _ in range(max(3, rounds)):
        chunk.unlink()
        filled = command("fill", scratch / "set")
        data = bytearray(chunk.read_bytes())
        data[len(data) // 2] ^= 1
        chunk.write_bytes(data)
        repaired = command("repair", scratch / "set")
        assert (filled["built"], repaired["built"]) == (1, 1)
        times["fill"].append(filled["cpu"])
        times["repair"].append(repaired["cpu"])
    fill, repair = (statistics.median(times[name]) for name in ("fill", "repair"))
    report.note(f"the whole set, {whole['total_chunks']} chunks", whole["cpu"], "s CPU")
    report.note("building one chunk that is gone", fill, "s CPU")
    report.note("repair of one chunk", repair, "s CPU")
    report.note("repair, over building that chunk", repair / fill, "x", 1.5, at_most=True)
    shutil.rmtree(scratch / "set")


MEASURES = {"build": measure_build, "ids": measure_ids, "sizes": measure_sizes, "verify": measure_verify, "scan": measure_scan, "repair": measure_repair}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smaller corpus, one round")
    parser.add_argument("--megabytes", type=int, help="of the corpus; default 100, quick 16")
    parser.add_argument("--rounds", type=int, help="default 3, quick 1")
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--json", action="store_true", help="all lines once more, for machines")
    options = parser.parse_args()
    chunk_peers.need_peers()
    jsonl = corpus(options.megabytes or (16 if options.quick else 100))
    report, rounds = Report(), options.rounds or (1 if options.quick else 3)
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(dir=DATA, prefix="scratch-") as scratch:
            MEASURES[name](report, jsonl, rounds, Path(scratch))
    if options.json:
        print(json.dumps(report.lines))


if __name__ == "__main__":
    main()
