"""What a tokenizer takes to load, and what texts that nobody meant well do to it.

    ./dev bench tokenizer_limits
    .venv/bin/python bench/tokenizer_limits_bench.py --rounds 3 --vocabularies gpt2,llama3

Loading: the wall time of Tokenizer.from_file without HuggingFace's verdict, the best of the rounds (others only wait
for what a neighbour does), and what resident memory grows by, with its peak.
Hostile texts: 4 MB in one line, in CPU time, beside normal text of the same process (the long documents of
tokenizer_bench, cold and warm). The bar is a twentieth of the normal rate, per byte; the figure is the warm one, which
asks for more. Each text is encoded for the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tokenizer_bench import halves, vocabulary_file

VOCABULARIES = ["gpt2", "llama3", "qwen2", "o200k", "gemma4", "bert-minilm", "t5"]
LOADED = ["gemma4", "qwen3_5", "xlm-r", "o200k", "llama3", "qwen2", "gpt2"]
BYTES = 4_000_000
BAR_LOAD_SECONDS, BAR_MEGABYTES, BAR_PART = 0.3, 150, 20


def hostile_texts() -> dict[str, str]:
    chance = random.Random(11)

    def line(make: Any) -> str:
        parts, size = [], 0
        while size < BYTES:
            parts.append(make())
            size += len(parts[-1].encode())
        return "".join(parts)

    def code_point() -> str:
        while True:
            point = chance.randrange(1, 0x110000)
            if not 0xD800 <= point < 0xE000 and point not in (10, 13):
                return chr(point)

    return {
        "one letter": "a" * BYTES,
        "blanks": " " * BYTES,
        "newlines": "\n" * BYTES,
        "dashes": "-" * BYTES,
        "equals signs": "=" * BYTES,
        "one Chinese character": "\u4e2d" * (BYTES // 3),
        "random letters": line(lambda: "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=1000))),
        "random capitals": line(lambda: "".join(chance.choices("abcdefghijklmABCDEFGHIJKLM", k=1000))),
        "random ideographs": line(lambda: chr(chance.randrange(0x4E00, 0xA000))),
        "random code points": line(code_point),
        "random bytes as Latin-1": line(lambda: chr(chance.choice([*range(0x20, 0x7F), *range(0xA1, 0x100)]))),
        "alternating scripts": "aж中a𠀀अ" * (BYTES // 14),
        "marks on one letter": "e" + "\u0301" * (BYTES // 2),
        "emoji joined": "\U0001f468\u200d\U0001f469\u200d" * (BYTES // 14),
        "apostrophes": "'s" * (BYTES // 2),
        "digits": "0123456789" * (BYTES // 10),
    }


def resident(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {name}")


def load_once(path: str) -> dict[str, float]:
    """Runs in a process of its own."""
    import lmemo

    lmemo.Tokenizer.from_str('{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}')
    before = resident("VmRSS")
    start = time.perf_counter()
    tokenizer = lmemo.Tokenizer.from_file(path)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "grown": resident("VmRSS") - before, "peak": resident("VmHWM") - before, "tokens": tokenizer.vocab_size}


def hostile_once(path: str) -> dict[str, float]:
    """Runs in a process of its own."""
    import lmemo

    tokenizer = lmemo.Tokenizer.from_file(path)

    def rate(texts: list[str]) -> float:
        size = sum(len(text.encode()) for text in texts)
        start = time.process_time()
        tokenizer.encode_batch(texts, threads=1)
        return size / (time.process_time() - start) / 1e6

    cold, warm = (rate(texts) for texts in halves("long"))
    return {"cold": cold, "warm": warm, **{name: rate([text]) for name, text in hostile_texts().items()}}


def measured(kind: str, vocabulary: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", kind, str(vocabulary_file(vocabulary))]
    environment = dict(os.environ, LMEMO_TOKENIZER_CHECK="never", OMP_NUM_THREADS="1")
    found: dict[str, float] = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    return found


def word(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def show_loading(vocabularies: list[str], rounds: int) -> None:
    print(f"loading (bars: {BAR_LOAD_SECONDS} s, {BAR_MEGABYTES} MB)")
    for vocabulary in vocabularies:
        runs = [measured("load", vocabulary) for _ in range(rounds)]
        best = min(run["seconds"] for run in runs)
        grown, peak = (statistics.median(run[name] for run in runs) for name in ("grown", "peak"))
        met = word(best < BAR_LOAD_SECONDS and peak < BAR_MEGABYTES)
        print(f"  {vocabulary:12} {runs[0]['tokens']:9,.0f} tokens  {best:5.2f} s  {grown:4.0f} MB (peak {peak:.0f})  {met}", flush=True)


def show_hostile(vocabularies: list[str], rounds: int) -> None:
    print(f"hostile texts, MB/s of CPU time (bar: 1/{BAR_PART} of the warm rate)")
    for vocabulary in vocabularies:
        runs = [measured("hostile", vocabulary) for _ in range(rounds)]
        rates = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        cold, warm = rates.pop("cold"), rates.pop("warm")
        print(f"  {vocabulary}: long documents {cold:.0f} / {warm:.0f}")
        for name, rate in sorted(rates.items(), key=lambda row: row[1]):
            print(f"    {name:24} {rate:7.0f}   1/{warm / rate:.1f}   {word(rate * BAR_PART >= warm)}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--vocabularies", help="of both parts")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", choices=["loading", "hostile"])
    arguments.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        kind, path = given.one
        print(json.dumps(load_once(path) if kind == "load" else hostile_once(path)))
        return
    chosen = given.vocabularies.split(",") if given.vocabularies else None
    if given.only != "hostile":
        show_loading(chosen or LOADED, given.rounds)
    if given.only != "loading":
        show_hostile(chosen or VOCABULARIES, given.rounds)


if __name__ == "__main__":
    main()
