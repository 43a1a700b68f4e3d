"""How fast the tokenizer is beside HuggingFace tokenizers, tiktoken, gigatoken, fastokens, tokie and splintr.

    ./dev bench tokenizer
    .venv/bin/python bench/tokenizer_bench.py --rounds 5 --vocabularies gpt2,llama3 --peers lmemo,gigatoken --json

Every figure is the median over rounds in which the peers alternate, each in a fresh process that is bound to as many
cores as it may use. Cold is the first pass of that process over one half of the documents, warm the second pass over
the other half; `saved` is a process that loaded what another one had learned in its
cold pass, on its first pass over that other half. All get the same list of str and give back ids of all documents in one buffer (their quickest way).
Loading, imports and reading files are not counted. Numbers are MB of UTF-8 a second.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import html
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "bench-data" / "texts"
VOCABULARIES = Path(os.environ.get("LMEMO_TOKENIZERS", ROOT.parent / "shared" / "tokenizers"))

BYTE_LEVEL = ["gpt2", "llama3", "qwen2"]
OTHERS = ["bert-minilm", "t5", "llama2"]
WORKLOADS = ["long", "short", "code", "chinese"]
SLOW = {"hf": 20, "tiktoken": 4}  # These get every so many'th document.
DEBIAN_TEXTS = [
    *("debian-reference-en", "debian-faq", "manpages-dev"),
    *("manpages-zh", "debian-reference-zh-cn", "maint-guide-zh-cn", "debian-handbook", "libreoffice-help-zh-cn"),
]


# ------------------------------------------------------------------------------------------------------ documents


def text_of(path: Path) -> str | None:
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, UnicodeDecodeError, gzip.BadGzipFile):
        return None
    if path.suffix == ".html":
        text = html.unescape(re.sub("<[^>]+>", "", text))
    return text if text and "\0" not in text else None


def texts_below(directory: Path, patterns: Iterable[str], max_bytes: int) -> list[str]:
    found, total = [], 0
    for path in sorted(path for pattern in patterns for path in directory.rglob(pattern)):
        text = text_of(path)
        if text:
            found.append(text)
            total += len(text)
        if total > max_bytes:
            break
    return found


def debian_texts() -> Path:
    """Manuals of Debian, English and Chinese, unpacked without installing them."""
    directory = DATA / "debian"
    if not directory.exists():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["apt-get", "download", *DEBIAN_TEXTS], cwd=scratch, check=True, capture_output=True)
            part = DATA / "debian.part"
            part.mkdir(parents=True, exist_ok=True)
            for package in sorted(Path(scratch).glob("*.deb")):
                subprocess.run(["dpkg-deb", "-x", package, part], check=True)
        part.rename(directory)
    return directory


def documents(workload: str) -> list[str]:
    standard_library = Path(os.__file__).parent
    if workload == "code":
        return texts_below(standard_library, ["*.py"], 20_000_000)
    debian = debian_texts()
    if workload == "chinese":
        lines = [
            "\n".join(line for line in text.split("\n") if re.search("[\u4e00-\u9fff]", line))
            for text in texts_below(debian, ["zh_CN/*/*.gz", "*.zh-cn.html", "zh-CN/*.html", "zh-CN/text/**/*.html"], 20_000_000)
        ]
        return [text for text in lines if len(text) > 50]
    english = texts_below(debian, ["*.en.html", "man2/*.gz", "man3/*.gz", "debian-faq*.txt.gz"], 20_000_000)
    if workload == "long":  # Prose, manuals and some code, a few hundred kilobytes each.
        mixed = english + texts_below(standard_library, ["*.py"], 3_000_000)
        return ["\n".join(mixed[i : i + 40]) for i in range(0, len(mixed), 40)]
    return [part for text in english for part in re.split(r"\n\s*\n|\n\.", text) if 20 < len(part) < 600]


def halves(workload: str) -> tuple[list[str], list[str]]:
    """Every other document: two halves of the same kind. Kept on disk, so that all processes read the same."""
    path = DATA / f"{workload}.json"
    if not path.exists():
        found = documents(workload)
        DATA.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps([found[::2], found[1::2]]))
        part.rename(path)
    first, second = json.loads(path.read_text())
    return first, second


def vocabulary_file(name: str) -> Path:
    path = DATA / f"{name}.json"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.decompress((VOCABULARIES / name / "tokenizer.json.gz").read_bytes()))
    return path


# ---------------------------------------------------------------------------------------------------------- peers

Encode = Callable[[list[str]], Any]


def lmemo_peer(path: str, threads: int, saved: Path | None = None) -> Encode:
    import lmemo

    tokenizer = lmemo.Tokenizer.from_file(path)
    if saved:
        tokenizer.load_pieces(saved)
    return lambda texts: tokenizer.encode_batch(texts, threads=threads)


def pieces_file(vocabulary: str, workload: str) -> Path:
    return DATA / f"{vocabulary}-{workload}.pieces"


def learn(vocabulary: str, workload: str) -> None:
    """Runs in a process of its own: saves what the first half teaches."""
    import lmemo

    tokenizer = lmemo.Tokenizer.from_file(vocabulary_file(vocabulary))
    tokenizer.encode_batch(halves(workload)[0])
    tokenizer.save_pieces(pieces_file(vocabulary, workload))


def hf_peer(path: str, threads: int) -> Encode:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(path)
    return lambda texts: tokenizer.encode_batch_fast(texts)


def tiktoken_peer(path: str, threads: int) -> Encode:
    import tiktoken

    file = json.loads(Path(path).read_text())
    alphabet = byte_alphabet()
    ranks = {}
    for token, rank in file["model"]["vocab"].items():
        with contextlib.suppress(KeyError):
            ranks[bytes(alphabet[c] for c in token)] = rank
    steps = file["pre_tokenizer"].get("pretokenizers", [])
    pattern = steps[0]["pattern"]["Regex"] if steps else GPT2
    encoding = tiktoken.Encoding(name="bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: encoding.encode_ordinary_batch(texts, num_threads=threads)


GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def byte_alphabet() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def gigatoken_peer(path: str, threads: int) -> Encode:
    import awkward  # noqa: F401  # Imported on first use otherwise, and that is not what is measured.
    import gigatoken

    tokenizer = gigatoken.Tokenizer(path)
    return lambda texts: tokenizer.encode_batch(texts, parallel=threads > 1)


def fastokens_peer(path: str, threads: int) -> Encode:
    import fastokens

    return fastokens.Tokenizer.from_file(path).encode_batch_flat


def tokie_peer(path: str, threads: int) -> Encode:
    import tokie

    return tokie.Tokenizer.from_json(path).encode_batch_flat


def splintr_peer(path: str, threads: int) -> Encode:
    import splintr

    return splintr.from_json(path).encode_batch_flat


PEERS: dict[str, Callable[..., Encode]] = {
    "lmemo": lmemo_peer,
    "saved": lmemo_peer,
    "gigatoken": gigatoken_peer,
    "fastokens": fastokens_peer,
    "tokie": tokie_peer,
    "splintr": splintr_peer,
    "tiktoken": tiktoken_peer,
    "hf": hf_peer,
}


# ----------------------------------------------------------------------------------------------------- measuring


def one_process(peer: str, vocabulary: str, workload: str, threads: int) -> dict[str, float]:
    """Runs in a process of its own: cold and warm."""
    path = str(vocabulary_file(vocabulary))
    if peer == "saved":
        subprocess.run([sys.executable, __file__, "--learn", json.dumps([vocabulary, workload])], check=True)
        encode = lmemo_peer(path, threads, pieces_file(vocabulary, workload))
    else:
        encode = PEERS[peer](path, threads)
    encode([""])  # Some import what they need on first use.
    rates = {}
    parts = halves(workload)
    if peer == "saved":  # Its first pass is over what nobody has seen, as others' second.
        parts = parts[::-1]
    for name, texts in zip(("cold", "warm"), parts, strict=True):
        chosen = texts[:: SLOW.get(peer, 1)]
        byte_count = sum(len(text.encode()) for text in chosen)
        start = time.perf_counter()
        encode(chosen)
        rates[name] = byte_count / (time.perf_counter() - start) / 1e6
    return rates


def measured(peer: str, vocabulary: str, workload: str, threads: int) -> dict[str, float] | None:
    command = [sys.executable, __file__, "--one", json.dumps([peer, vocabulary, workload, threads])]
    # numpy's own threads, which nobody here needs, spin for the first tenth of a second: as long as all that is measured.
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM=str(threads > 1).lower())
    cores = ",".join(map(str, range(threads)))
    done = subprocess.run(["taskset", "-c", cores, *command], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


Runs = dict[str, list[dict[str, float]]]  # By peer, one for each round.


def rows_of(vocabularies: list[str], workloads: list[str], peers: list[str], threads: list[int], rounds: int) -> list[dict[str, Any]]:
    rows = []
    for vocabulary in vocabularies:
        for workload in workloads:
            halves(workload)
            found: dict[int, Runs] = {count: {peer: [] for peer in peers} for count in threads}
            for _ in range(rounds):
                for peer in peers:
                    for count, runs in found.items():
                        if peer not in runs:
                            continue
                        rates = measured(peer, vocabulary, workload, count)
                        if rates is None:
                            del runs[peer]  # It refuses this vocabulary.
                        else:
                            runs[peer].append(rates)
            for count, runs in found.items():
                rates_of = {p: {k: statistics.median(r[k] for r in of) for k in ("cold", "warm")} for p, of in runs.items()}
                row = {"vocabulary": vocabulary, "workload": workload, "threads": count, "rates": rates_of}
                if count > 1 and found.get(1, {}).get("lmemo"):
                    row["over_one_thread"] = times_one_thread(runs["lmemo"], found[1]["lmemo"])
                rows.append(row)
                print_row(row)
    return rows


def times_one_thread(many: list[dict[str, float]], one: list[dict[str, float]]) -> dict[str, float]:
    return {k: statistics.median(a[k] / b[k] for a, b in zip(many, one, strict=True)) for k in ("cold", "warm")}


def print_row(row: dict[str, Any]) -> None:
    rates = row["rates"]
    best = {k: max((r[k] for p, r in rates.items() if p not in ("lmemo", "saved", "hf")), default=0.0) for k in ("cold", "warm")}
    ours = rates.get("lmemo")
    shown = "  ".join(f"{p} {r['cold']:.0f}/{r['warm']:.0f}" for p, r in rates.items())
    ratio = ""
    if ours and best["cold"]:
        ratio = f"  × best {ours['cold'] / best['cold']:.2f}/{ours['warm'] / best['warm']:.2f}"
    if ours and "hf" in rates:
        ratio += f"  × hf {ours['cold'] / rates['hf']['cold']:.0f}/{ours['warm'] / rates['hf']['warm']:.0f}"
    if ours and "saved" in rates:
        ratio += f"  saved × warm {rates['saved']['cold'] / ours['warm']:.2f}"
    if "over_one_thread" in row:
        ratio += f"  × one thread {row['over_one_thread']['cold']:.2f}/{row['over_one_thread']['warm']:.2f}"
    print(f"{row['vocabulary']:12} {row['workload']:8} {row['threads']} thread(s)  {shown}{ratio}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--vocabularies", default=",".join(BYTE_LEVEL + OTHERS))
    arguments.add_argument("--workloads", default=",".join(WORKLOADS))
    arguments.add_argument("--peers", default=",".join(PEERS))
    arguments.add_argument("--threads", default="1,2")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("--learn", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.learn:
        learn(*json.loads(given.learn))
        return
    if given.one:
        print(json.dumps(one_process(*json.loads(given.one))))
        return
    print("MB/s, cold/warm")
    lists = [given.vocabularies, given.workloads, given.peers]
    rows = rows_of(*(text.split(",") for text in lists), [int(n) for n in given.threads.split(",")], given.rounds)
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
