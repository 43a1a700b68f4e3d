"""The section cache beside git, HuggingFace tokenizers, gigatoken and plain reading, on the Linux sources.

    .venv/bin/python bench/sections_bench.py [--quick] [--tree DIR] [--vocabulary gpt2]

The tree is that of Debian's package linux-source-6.1, unpacked (/usr/src/linux-source-6.1.tar.xz); --quick takes a part of it. Every
figure is a ratio to a peer of the same run; the machine's CPU seconds stand beside the wall, since others may use it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
os.environ.setdefault("RAYON_NUM_THREADS", "2")

import lmemo  # noqa: E402
import tokenizer_vocabularies  # noqa: E402
import tokenizers  # noqa: E402

ARCHIVE = Path("/usr/src/linux-source-6.1.tar.xz")
QUICK_PARTS = ("fs", "kernel", "mm", "net", "lib", "block", "crypto", "ipc", "init", "security")
EXCLUDE = [".git"]


def cpu_seconds() -> float:
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(work: Callable[[], object], times: int = 1) -> tuple[float, float]:
    """Median wall seconds, and the CPU seconds of that run."""
    runs = []
    for _ in range(times):
        cpu, wall = cpu_seconds(), time.perf_counter()
        work()
        runs.append((time.perf_counter() - wall, cpu_seconds() - cpu))
    return statistics.median(wall for wall, _ in runs), statistics.median(cpu for _, cpu in runs)


def linux_tree(folder: Path) -> Path:
    if not ARCHIVE.is_file():
        raise SystemExit("no Linux sources: apt-get install linux-source-6.1, or give --tree")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")
    return folder / "linux-source-6.1"


def line(name: str, ours: tuple[float, float], peer_name: str, peer: tuple[float, float], bar: str, is_slower: bool = False) -> None:
    wall = ours[0] / peer[0] if is_slower else peer[0] / ours[0]
    cpu = ours[1] / peer[1] if is_slower else peer[1] / ours[1]
    print(f"{name:34} {ours[0]:8.3f} s ({ours[1]:7.3f} CPU)  {peer_name:26} {peer[0]:8.3f} s ({peer[1]:7.3f} CPU)  {wall:7.2f} x wall {cpu:7.2f} x CPU   bar {bar}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a part of the tree")
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--vocabulary", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lmemo-sections-bench-") as name:
        folder = Path(name)
        tree = options.tree or linux_tree(folder)
        if options.quick:
            part = folder / "part"
            for directory in QUICK_PARTS:
                shutil.copytree(tree / directory, part / directory, symlinks=True)
            tree = part
        if not (tree / ".git").is_dir():
            git = ["git", "-C", str(tree), "-c", "user.name=b", "-c", "user.email=b@b", "-c", "core.excludesFile="]
            for words in (["init", "-q"], ["add", "-f", "-A"], ["commit", "-qm", "x"]):
                subprocess.run([*git, *words], check=True, stdout=subprocess.DEVNULL)
        time.sleep(2.5)  # Nothing is racy any more, neither for git nor for us.
        for vocabulary in options.vocabulary or ["gpt2", "llama3"]:
            measure(tree, folder, vocabulary)


def measure(tree: Path, folder: Path, vocabulary: str) -> None:
    files = [Path(root) / file for root, directories, names in os.walk(tree) for file in names if ".git" not in Path(root).relative_to(tree).parts]
    files = [path for path in files if path.is_file() and not path.is_symlink()]
    print(f"\n{vocabulary}: {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:,.0f} MB")
    json_text = tokenizer_vocabularies.json_of(vocabulary)
    model = folder / f"{vocabulary}.json"
    model.write_text(json_text)
    tokenizer = lmemo.Tokenizer.from_file(model)
    huggingface = tokenizers.Tokenizer.from_str(json_text)

    # Sections are those files that can be read as text; peers get the same.
    def readable() -> list[str]:
        found = []
        for path in files:
            content = path.read_bytes()
            if b"\0" not in content[:1024]:
                try:
                    found.append(content.decode())
                except UnicodeDecodeError:
                    pass
        return found

    reading = measured(lambda: [path.read_bytes() for path in files])
    texts = readable()

    # HuggingFace, file by file, on a sample, scaled by bytes; in batches for the warm ratio.
    sample = texts[:: max(1, len(texts) // 300)]
    scale = sum(map(len, texts)) / sum(map(len, sample))
    one_by_one = measured(lambda: [huggingface.encode(text).ids for text in sample])
    one_by_one = one_by_one[0] * scale, one_by_one[1] * scale
    batched = measured(lambda: huggingface.encode_batch(sample))
    batched = batched[0] * scale, batched[1] * scale

    store_path = folder / f"store-{vocabulary}"
    store = lmemo.Store(store_path)
    cache = lmemo.SectionCache(store, tokenizer, None)

    def sync(**arguments: bool) -> lmemo.Run:
        return cache.sync(tree, exclude=EXCLUDE, default_excludes=False, **arguments)

    cold = measured(sync)
    line("cold sync", cold, "HF, file by file", one_by_one, ">= 20")
    peer = gigatoken_peer(json_text, texts, folder)
    if peer:
        line("cold sync", cold, "gigatoken + write", peer, ">= 1.3")
    else:
        print("gigatoken is not installed: no such figure")
    del texts
    warm = measured(sync, 5)
    status = measured(lambda: subprocess.run(["git", "-C", str(tree), "status", "--short"], check=True, stdout=subprocess.DEVNULL), 5)
    line("warm sync", warm, "git status", status, "<= 3", is_slower=True)
    line("warm sync", warm, "HF in batches, cold", batched, ">= 100")
    rehash = measured(lambda: sync(rehash=True), 3)
    line("warm sync, rehash", rehash, "reading all files", reading, "<= 1.5", is_slower=True)
    run = sync()
    count = 0

    def rows() -> None:
        nonlocal count
        count = sum(len(row) for row in run.rows)

    delivered = measured(rows, 3)
    print(f"rows to Python: {count * 4 / delivered[0] / 1e9:.2f} GB/s of ids as 4 bytes, {count * 4 / delivered[1] / 1e9:.2f} by CPU   bar >= 1")
    store.flush()
    disk = sum(path.stat().st_size for path in store_path.rglob("*") if path.is_file())
    print(f"disk: {disk / count:.3f} bytes a token, all files of the store   bar <= {2.2 if tokenizer.vocab_size <= 65536 else 3.2}")
    command = "import sys, resource, lmemo; s = lmemo.Store(sys.argv[1]); c = lmemo.SectionCache(s, lmemo.Tokenizer.from_file(sys.argv[2]), None);" \
              "c.sync(sys.argv[3], exclude=['.git'], default_excludes=False); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"  # fmt: skip
    for label, target in (("warm", store_path), ("cold", folder / f"second-{vocabulary}")):
        peak = subprocess.run([sys.executable, "-c", command, str(target), str(model), str(tree)], check=True, capture_output=True, text=True).stdout
        print(f"peak memory, {label}: {int(peak) / 1024:.0f} MB   bar <= 500")
    shutil.rmtree(folder / f"second-{vocabulary}", ignore_errors=True)


def gigatoken_peer(json_text: str, texts: list[str], folder: Path) -> tuple[float, float] | None:
    try:
        import gigatoken
    except ImportError:
        return None
    tokenizer = gigatoken.Tokenizer(tokenizers.Tokenizer.from_str(json_text))

    def work() -> None:
        result = tokenizer.encode_batch(texts)
        with open(folder / "gigatoken.bin", "wb") as file:
            for ids in result:
                file.write(memoryview(__import__("numpy").asarray(ids, dtype="uint32")))

    return measured(work)


if __name__ == "__main__":
    main()
