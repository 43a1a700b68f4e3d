"""`--memory-limit` holds, as the kernel measures it, whatever the size of the corpus."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chunk_commands import LMEMO, corpus, documents, tokenizer, write_lines  # noqa: F401

LIMIT = 256_000_000
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


def measured_build(lines: Path, tokenizer: Path, directory: Path, *more: str) -> tuple[Any, int]:
    """The report, and the most memory that the process ever had, in bytes."""
    words = ["build", str(lines), "-t", str(tokenizer), "-o", str(directory), "--chunk-sequences", "400", "--workers", "4", "--json", *more]
    # Through a small process: what a child has at most begins with what its parent had when it was started.
    program = [sys.executable, "-S", "-c", MEASURE, *LMEMO, "chunks", *words]
    ran = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), int(ran.stderr.split()[-1]) * 1024


@pytest.fixture(scope="module")
def large(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten times the corpus, and no document twice."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    write_lines(path, [f"Copy {copy}, document {number}.\n{text}" for copy in range(10) for number, text in enumerate(documents())])
    return path


def test_ten_times_the_corpus_needs_no_more_memory(corpus: Path, large: Path, tokenizer: Path, tmp_path: Path) -> None:
    small_report, small_bytes = measured_build(corpus, tokenizer, tmp_path / "small", "--memory-limit", str(LIMIT))
    report, most_bytes = measured_build(large, tokenizer, tmp_path / "large", "--memory-limit", str(LIMIT))
    assert report["documents"] == 10 * small_report["documents"] and report["tokens"] > 10 * small_report["tokens"]
    assert report["tokens"] == report["tokens_in"] and report["total_chunks"] >= 8 * small_report["total_chunks"]
    assert most_bytes < LIMIT
    assert most_bytes - small_bytes < 32_000_000  # Plan and registry, and what the tokenizer remembers of new words.


def test_a_limit_lowers_the_workers_and_one_that_is_too_small_says_what_would_do(large: Path, tokenizer: Path, tmp_path: Path) -> None:
    assert measured_build(large, tokenizer, tmp_path / "many")[0]["workers"] == 4
    report, most_bytes = measured_build(large, tokenizer, tmp_path / "fewer", "--memory-limit", "320MB", "--chunk-sequences", "2000")
    assert report["workers"] < 4 and most_bytes < 320_000_000
    words = ["build", str(large), "-t", str(tokenizer), "-o", str(tmp_path / "none"), "--chunk-sequences", "400", "--memory-limit", "20MB"]
    ran = subprocess.run([*LMEMO, "chunks", *words], capture_output=True, text=True)
    assert ran.returncode == 2 and "would do for one worker" in ran.stderr and "--chunk-sequences" in ran.stderr
    enough = ran.stderr.split("for the program; ")[1].split(" would do")[0].replace(" ", "")
    assert measured_build(large, tokenizer, tmp_path / "enough", "--memory-limit", enough)[0]["workers"] == 1


@pytest.mark.parametrize("kind", ["one document", "no two letters alike"])
def test_a_text_with_more_tokens_than_was_foretold_stays_within_the_limit(corpus: Path, tokenizer: Path, tmp_path: Path, kind: str) -> None:
    rng = random.Random(6)
    texts = ["x y z " * 5_000_000] if kind == "one document" else ["".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=2000))) for _ in range(5000)]
    with (tmp_path / "lines.jsonl").open("w") as lines:
        lines.write(corpus.read_text())  # English, of which the sample is.
        lines.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    words = ["build", str(tmp_path / "lines.jsonl"), "-t", str(tokenizer), "-o", str(tmp_path / "set"), "--chunk-sequences", "20000", "--memory-limit", "1"]
    ran = subprocess.run([*LMEMO, "chunks", *words], capture_output=True, text=True)
    assert ran.returncode == 2
    enough = int(ran.stderr.split("for the program; ")[1].split(" MiB would do")[0])
    report, most_bytes = measured_build(tmp_path / "lines.jsonl", tokenizer, tmp_path / "set", "--chunk-sequences", "20000", "--memory-limit", f"{enough}MiB")
    assert report["tokens"] == report["tokens_in"] and most_bytes < enough << 20
