"""How fast a data set is built and opened, beside a transformers + datasets pipeline that does the same.

    ./dev bench dataset
    .venv/bin/python bench/dataset_bench.py --rows 40000 --rounds 3 --json

The peer loads the same JSON lines, tokenises them in batches with the same tokenizer (map, batched, num_proc=2), appends the end, cuts to
max_length, copies the labels, and saves with save_to_disk; everything cold: a fresh cache directory each time. Both run in processes of their
own, alternating; imports are done before the clock starts, and peak memory is the resident set of the process and its children, sampled
from /proc. `ensure` and `load_from_disk` are timed in one process, alternating: the median of the ratios of pairs, since a busy machine
disturbs both alike.

--tokenizer names a model's directory; without it, GPT-2's from the folder of the parity tests.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

PEER = """
import sys, json, time
import datasets, transformers
datasets.disable_progress_bars()
model, file, out, cache = sys.argv[1:]
tokenizer = transformers.AutoTokenizer.from_pretrained(model)
eos = tokenizer.eos_token_id
def encode(rows):
    ids = [(row + [eos])[:512] for row in tokenizer(rows["text"], add_special_tokens=True)["input_ids"]]
    return {"input_ids": ids, "labels": ids}
print("ready", flush=True); sys.stdin.readline()
start = time.perf_counter()
data = datasets.load_dataset("json", data_files=file, cache_dir=cache, split="train")
data = data.map(encode, batched=True, num_proc=2, remove_columns=data.column_names)
datasets.DatasetDict({"train": data}).save_to_disk(out)
print(json.dumps({"seconds": time.perf_counter() - start, "rows": len(data)}), flush=True)
sys.stdin.readline()
"""

OURS = """
import sys, json, time
import lmemo.dataset
model, file, out, cache = sys.argv[1:]
print("ready", flush=True); sys.stdin.readline()
start = time.perf_counter()
outcome = lmemo.dataset.build(model_name=model, train_file=file, cached_tokens_dir=out, max_length=512, store=lmemo.Store(cache))
seconds = time.perf_counter() - start
assert outcome.was_built
print(json.dumps({"seconds": seconds, "rows": outcome.counts["train_rows"], "tokens": outcome.counts["train_tokens"],
                  "tokenised": outcome.counts["rows_tokenised"]}), flush=True)
sys.stdin.readline()
"""

WARM = """
import sys, json, time, statistics
import datasets, lmemo.dataset
model, file, out, rounds = sys.argv[1:]
def ensure(): return lmemo.dataset.ensure(model_name=model, train_file=file, cached_tokens_dir=out, max_length=512)
def load(): return datasets.load_from_disk(out + "/tokenized_dataset")
times = {"ensure": [], "load": []}
ensure(); load()
for _ in range(int(rounds)):
    for name, call in (("ensure", ensure), ("load", load)):
        start = time.perf_counter(); call(); times[name].append(time.perf_counter() - start)
ratios = [a / b for a, b in zip(times["ensure"], times["load"])]
print(json.dumps({"ensure": statistics.median(times["ensure"]), "load": statistics.median(times["load"]), "ratio": statistics.median(ratios),
                  "best_ratio": min(times["ensure"]) / min(times["load"])}))
"""


def resident_bytes(root: int) -> int:
    """Of a process and all its descendants, shared pages counted once for each (as the peer's workers are forked, PSS is used)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def measured(code: str, *words: str) -> dict[str, Any]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    peak, done = resident_bytes(process.pid), threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.stdin.write("\n")
    process.stdin.flush()
    result: dict[str, Any] = json.loads(process.stdout.readline())
    done.set()
    watcher.join()
    process.stdin.close()
    process.wait()
    return result | {"peak_bytes": peak}


def make_lines(file: Path, rows: int) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples" / "corpus").glob("*.txt"))]
    words = " ".join(texts).split(" ")
    dice = random.Random(1)
    with open(file, "w", encoding="utf-8") as lines:
        for number in range(rows):
            start, length = dice.randrange(len(words) - 400), dice.randrange(20, 400)
            lines.write(json.dumps({"id": number, "text": f"{number} " + " ".join(words[start : start + length])}) + "\n")


def make_model(directory: Path) -> None:
    folder = Path(os.environ.get("LMEMO_TOKENIZERS", ROOT.parent / "shared" / "tokenizers"))
    packed = folder / "gpt2" / "tokenizer.json.gz"
    if not packed.exists():
        sys.exit(f"no tokenizer: {packed} is missing; name a model's directory with --tokenizer, or the folder with LMEMO_TOKENIZERS")
    directory.mkdir()
    (directory / "tokenizer.json").write_bytes(gzip.decompress(packed.read_bytes()))
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rows, one round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.rounds = 10_000, 1
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

    work = Path(tempfile.mkdtemp(prefix="lmemo-bench-"))
    try:
        model = options.tokenizer or work / "model"
        if options.tokenizer is None:
            make_model(model)
        file = work / "train.jsonl"
        make_lines(file, options.rows)
        peers, ours = [], []
        for number in range(options.rounds):
            peers.append(measured(PEER, str(model), str(file), str(work / f"peer{number}"), str(work / f"cache{number}")))
            ours.append(measured(OURS, str(model), str(file), str(work / "set"), str(work / f"store{number}")))
            if number + 1 < options.rounds:
                shutil.rmtree(work / "set")
            shutil.rmtree(work / f"peer{number}")
            shutil.rmtree(work / f"cache{number}")

        # One line in a hundred changed: only these are tokenised, and all of it is written anew.
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        changed = work / "changed.jsonl"
        changed.write_text("".join(line.replace('"text": "', '"text": "x ') if n % 100 == 0 else line for n, line in enumerate(lines)))
        again = measured(OURS, str(model), str(changed), str(work / "set2"), str(work / f"store{options.rounds - 1}"))

        time.sleep(2.1)  # Files as young as these are hashed again: their times cannot be trusted yet.
        warm_run = subprocess.run(
            [sys.executable, "-c", WARM, str(model), str(file), str(work / "set"), "30"], capture_output=True, text=True, check=True
        )
        warm = json.loads(warm_run.stdout)
        speed = statistics.median(p["seconds"] / o["seconds"] for p, o in zip(peers, ours, strict=True))
        memory = statistics.median(o["peak_bytes"] / p["peak_bytes"] for p, o in zip(peers, ours, strict=True))
        peer_seconds = statistics.median(p["seconds"] for p in peers)
        our_seconds = statistics.median(o["seconds"] for o in ours)
        figures = {
            "rows": options.rows, "bytes": file.stat().st_size, "tokens": ours[0]["tokens"],
            "peer_cold_seconds": peer_seconds, "cold_seconds": our_seconds, "cold_times_faster": speed,
            "peer_peak_bytes": statistics.median(p["peak_bytes"] for p in peers),
            "peak_bytes": statistics.median(o["peak_bytes"] for o in ours), "memory_share": memory,
            "one_percent_changed_seconds": again["seconds"], "one_percent_rows_tokenised": again["tokenised"],
            "warm_seconds": warm["ensure"], "load_from_disk_seconds": warm["load"], "warm_over_load": warm["ratio"],
            "warm_over_load_best": warm["best_ratio"],
            "warm_times_faster_than_peer_cold": peer_seconds / warm["ensure"],
            "warm_times_faster_than_own_cold": our_seconds / warm["ensure"],
        }  # fmt: skip
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{figures['rows']:,} rows, {figures['bytes'] / 1e6:.0f} MB, {figures['tokens']:,} tokens; medians of {options.rounds} rounds\n")
    print(f"cold build            lmemo {our_seconds:7.2f} s   transformers + datasets {peer_seconds:7.2f} s   {speed:5.1f} ×  (bar 15)")
    print(f"peak memory           lmemo {figures['peak_bytes'] / 1e6:7.0f} MB  transformers + datasets {figures['peer_peak_bytes'] / 1e6:7.0f} MB  {memory:5.2f}    (bar 0.25)")
    print(f"1 % of lines changed  lmemo {again['seconds']:7.2f} s   {again['tokenised']:,} rows tokenised")
    print(f"warm ensure           lmemo {warm['ensure'] * 1e3:7.2f} ms  load_from_disk {warm['load'] * 1e3:.2f} ms   {warm['ratio']:5.2f} ×  (bar 1.5; the best of each: {warm['best_ratio']:.2f} ×)")
    print(f"                      {peer_seconds / warm['ensure']:,.0f} × faster than the peer's cold build, {our_seconds / warm['ensure']:,.0f} × than its own (bar 200)")


if __name__ == "__main__":
    main()
