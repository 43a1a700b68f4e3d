"""The section cache beside git, HuggingFace tokenizers, gigatoken and plain reading, on the Linux sources.

    .venv/bin/python bench/sections_bench.py [--quick] [--tree DIR] [--vocabulary gpt2]

The tree is that of Debian's package linux-source-6.1, which is installed if this is root, and unpacked to build/linux-source once; --quick
takes ten of its directories. Every figure is a ratio to a peer of the same run, peers and we in turn where both are short, medians; CPU
seconds stand beside the wall, since others may use the machine. gigatoken is asked if it is installed (pip install gigatoken).
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
os.environ["TOKENIZERS_PARALLELISM"] = "true"
os.environ["RAYON_NUM_THREADS"] = "2"
os.environ["LMEMO_TOKENIZER_CHECK"] = "never"  # The verdict on first use is not the point here.

import lmemo  # noqa: E402
import numpy  # noqa: E402
import tokenizer_vocabularies  # noqa: E402
import tokenizers  # noqa: E402

ARCHIVE = Path("/usr/src/linux-source-6.1.tar.xz")
QUICK_PARTS = ("fs", "kernel", "mm", "net", "lib", "block", "crypto", "ipc", "init", "security")
SYNC = {"exclude": [".git"], "default_excludes": False}


class Seconds(NamedTuple):
    """Of one piece of work."""

    wall: float
    cpu: float

    def times(self, factor: float) -> Seconds:
        return Seconds(self.wall * factor, self.cpu * factor)


def cpu_seconds() -> float:
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def once(work: Callable[[], object]) -> Seconds:
    cpu, wall = cpu_seconds(), time.perf_counter()
    work()
    return Seconds(time.perf_counter() - wall, cpu_seconds() - cpu)


def median(runs: list[Seconds]) -> Seconds:
    return Seconds(statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs))


def in_turn(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[Seconds, Seconds]:
    """Whoever else uses the machine then disturbs both alike."""
    pairs = [(once(ours), once(peer)) for _ in range(rounds)]
    return median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])


def verdict(figure: float, bar: float, at_most: bool) -> str:
    return f"bar {'<=' if at_most else '>='} {bar:g}: {'met' if (figure <= bar if at_most else figure >= bar) else 'MISSED'}"


def line(name: str, ours: Seconds, peer_name: str, peer: Seconds, bar: float, at_most: bool = False) -> None:
    """A ratio: how many times as long as the peer (at_most), or how many times as fast."""
    wall = ours.wall / peer.wall if at_most else peer.wall / ours.wall
    cpu = (ours.cpu / peer.cpu if at_most else peer.cpu / ours.cpu) if min(ours.cpu, peer.cpu) > 0 else float("nan")
    print(f"  {name:22} {ours.wall:8.3f} s ({ours.cpu:7.3f} CPU)  {peer_name:26} {peer.wall:9.3f} s ({peer.cpu:8.3f} CPU)  "
          f"{wall:8.2f} x wall {cpu:8.2f} x CPU   {verdict(wall, bar, at_most)}", flush=True)  # fmt: skip


def figure(name: str, value: float, unit: str, bar: float, at_most: bool) -> None:
    print(f"  {name:50} {value:8.2f} {unit:16} {verdict(value, bar, at_most)}", flush=True)


def linux_tree(quick: bool) -> Path:
    tree = ROOT / "build" / ("linux-source-part" if quick else "linux-source")
    if tree.is_dir():
        return tree
    if not ARCHIVE.is_file():
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "linux-source-6.1"]
        if os.geteuid() != 0:
            raise SystemExit(f"no Linux sources: {' '.join(command)}, or give --tree")
        subprocess.run(["apt-get", "update", "-qq"], check=False, stdout=subprocess.DEVNULL)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    draft = tree.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    parts = [f"linux-source-6.1/{part}" for part in QUICK_PARTS] if quick else []
    subprocess.run(["tar", "-xJf", str(ARCHIVE), "--strip-components=1", "-C", str(draft), *parts], check=True)
    draft.rename(tree)
    return tree


def fresh_index(tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=b", "-c", "user.email=b@b", "-c", "core.excludesFile=", "-c", "gc.auto=0"]
    if not (tree / ".git").is_dir():
        for words in (["init", "-q"], ["add", "-f", "-A"], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], check=True, stdout=subprocess.DEVNULL)
    time.sleep(2.5)  # Nothing is racy any more, neither for git nor for us.
    subprocess.run([*git, "update-index", "-q", "--refresh"], check=False, stdout=subprocess.DEVNULL)


def readable(files: list[Path]) -> list[str]:
    """Those that are sections: peers get the same."""
    found = []
    for path in files:
        content = path.read_bytes()
        if b"\0" not in content[:1024]:
            try:
                found.append(content.decode())
            except UnicodeDecodeError:
                pass
    return found


def gigatoken_seconds(json_text: str, texts: list[str], folder: Path) -> Seconds | None:
    """The same files, the result written to disk."""
    try:
        import gigatoken
    except ImportError:
        return None
    tokenizer = gigatoken.Tokenizer(tokenizers.Tokenizer.from_str(json_text))

    def work() -> None:
        result = tokenizer.encode_batch(texts)
        with open(folder / "gigatoken.bin", "wb") as file:
            for ids in result:
                file.write(memoryview(numpy.asarray(ids, dtype="uint32")))

    return once(work)


# VmHWM, not ru_maxrss: that one counts what this process had when it started the other.
MEMORY = """
import re, sys, lmemo
cache = lmemo.SectionCache(lmemo.Store(sys.argv[1]), lmemo.Tokenizer.from_file(sys.argv[2]), None)
run = cache.sync(sys.argv[3], exclude=[".git"], default_excludes=False)
print(run.stats.total_sections, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def measure_cold(cache: lmemo.SectionCache, tree: Path, files: list[Path], json_text: str, folder: Path) -> Seconds:
    """Cold, and its peers. How long HuggingFace's engine takes in its faster way, for the warm ratio."""
    texts = readable(files)
    total = sum(map(len, texts))
    sample = texts[:: max(1, len(texts) // 300)]
    scale = total / sum(map(len, sample))
    huggingface = tokenizers.Tokenizer.from_str(json_text)
    one_by_one = once(lambda: [huggingface.encode(text).ids for text in sample]).times(scale)
    batched = once(lambda: [encoding.ids for encoding in huggingface.encode_batch(sample)]).times(scale)
    cold = once(lambda: cache.sync(tree, **SYNC))
    line("cold sync", cold, "HF, file by file", one_by_one, 20)
    if peer := gigatoken_seconds(json_text, texts, folder):
        line("cold sync", cold, "gigatoken, written", peer, 1.3)
    else:
        print("  gigatoken is not installed: no such figure; pip install gigatoken")
    return min(batched, one_by_one)


def measure_rows(store_path: Path, model: Path, tree: Path) -> int:
    """Rows to Python, every id read. A new Store: the first read of a record checks its checksum."""
    with lmemo.Store(store_path) as store:
        run = lmemo.SectionCache(store, lmemo.Tokenizer.from_file(model), None).sync(tree, **SYNC)
        delivered = tokens = 0

        def read() -> None:
            nonlocal delivered, tokens
            delivered = tokens = 0
            for row in run.rows:
                if len(row):
                    row.max()  # Looks at every id.
                delivered += row.nbytes
                tokens += len(row)

        first, again = once(read), median([once(read) for _ in range(3)])
        figure("rows to Python, every id read, checksums checked", delivered / first.wall / 1e9, "GB/s", 1, at_most=False)
        figure("  again", delivered / again.wall / 1e9, "GB/s", 1, at_most=False)
        return tokens


def measure(tree: Path, folder: Path, vocabulary: str, rounds: int) -> None:
    files = [Path(root) / file for root, directories, names in os.walk(tree) for file in names if ".git" not in Path(root).relative_to(tree).parts]
    files = [path for path in files if path.is_file() and not path.is_symlink()]
    print(f"\n{vocabulary}: {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:,.0f} MB, load {os.getloadavg()[0]:.1f}", flush=True)
    json_text = tokenizer_vocabularies.json_of(vocabulary)
    model = folder / f"{vocabulary}.json"
    model.write_text(json_text)
    tokenizer = lmemo.Tokenizer.from_file(model)
    store_path = folder / f"store-{vocabulary}"
    store = lmemo.Store(store_path, max_bytes=0)
    cache = lmemo.SectionCache(store, tokenizer, None)
    huggingface = measure_cold(cache, tree, files, json_text, folder)

    warm, status = in_turn(
        lambda: cache.sync(tree, **SYNC),
        lambda: subprocess.run(["git", "-C", str(tree), "status", "--short"], check=True, stdout=subprocess.DEVNULL),
        rounds,
    )
    line("warm sync", warm, "git status", status, 3, at_most=True)
    line("warm sync", warm, "HF, up to 2 threads", huggingface, 100)
    names = b"".join(os.fsencode(path) + b"\0" for path in files)
    rehash, reading = in_turn(
        lambda: cache.sync(tree, rehash=True, **SYNC),
        lambda: subprocess.run(["xargs", "-0", "cat"], input=names, check=True, stdout=subprocess.DEVNULL),
        max(1, rounds // 2),
    )
    line("warm sync, rehash", rehash, "cat of all files", reading, 1.5, at_most=True)
    store.close()
    tokens = measure_rows(store_path, model, tree)
    disk = sum(path.stat().st_size for path in store_path.rglob("*") if path.is_file())
    figure("disk, all files of the store", disk / tokens, "bytes a token", 2.2 if tokenizer.vocab_size <= 65536 else 3.2, at_most=True)
    for label, target in (("cold", folder / "second"), ("warm", folder / "second")):
        ran = subprocess.run([sys.executable, "-c", MEMORY, str(target), str(model), str(tree)], check=True, capture_output=True, text=True)
        sections, peak = map(int, ran.stdout.split())
        figure(f"peak memory, {label}, {sections:,} sections", peak / 1024, "MB", 500, at_most=True)
    shutil.rmtree(folder / "second")
    shutil.rmtree(store_path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a part of the tree, fewer rounds")
    parser.add_argument("--tree", type=Path, help="another tree than Linux")
    parser.add_argument("--vocabulary", action="append", default=[], help="gpt2 and llama3 if not given; may be repeated")
    options = parser.parse_args()
    tree = options.tree or linux_tree(options.quick)
    fresh_index(tree)
    with tempfile.TemporaryDirectory(prefix="lmemo-sections-bench-") as name:
        for vocabulary in options.vocabulary or ["gpt2", "llama3"]:
            measure(tree, Path(name), vocabulary, rounds=3 if options.quick else 7)


if __name__ == "__main__":
    main()
