"""`lmemo chunks` as tests run it: real processes on real texts, with GPT-2's tokenizer."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizer_vocabularies

CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus"
LMEMO = [sys.executable, "-m", "lmemo"]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpt2") / "tokenizer.json"
    path.write_text(tokenizer_vocabularies.json_of("gpt2"))
    return path


def documents() -> list[str]:
    """Sections of real texts, of very different lengths."""
    texts = []
    for file in sorted(CORPUS.glob("*.txt")):
        paragraphs = file.read_text().split("\n\n")
        rng = random.Random(file.name)
        while paragraphs:
            count = rng.choice([1, 2, 5, 30])
            texts.append("\n\n".join(paragraphs[:count]))
            paragraphs = paragraphs[count:]
    return [text for text in texts if text]


def write_lines(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    write_lines(path, documents())
    return path


def run(*words: object, code: int = 0) -> Any:
    ran = subprocess.run([*LMEMO, "chunks", *map(str, words), "--json"], capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def in_words(*words: object, code: int = 0, cwd: Path | None = None) -> tuple[str, str]:
    ran = subprocess.run([*LMEMO, "chunks", *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout, ran.stderr


def build(corpus: Path | list[Path], tokenizer: Path, directory: Path, *more: object, code: int = 0) -> Any:
    inputs = corpus if isinstance(corpus, list) else [corpus]
    return run("build", *inputs, "--tokenizer", tokenizer, "--output", directory, "--chunk-sequences", 100, *more, code=code)


def digests(directory: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted((directory / "chunks").glob("*.chunk"))}


@pytest.fixture(scope="session")
def built(corpus: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built") / "set"
    report = build(corpus, tokenizer, directory, "--workers", 1)
    assert report["complete"] and report["total_chunks"] > 5
    assert report["tokens"] == report["tokens_in"]
    return directory


def copy_of(built: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", str(built), str(to)], check=True)
    return to


def flip(file: Path, at: int | None = None) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 4
    file.write_bytes(data)


def chunk(directory: Path, number: int) -> Path:
    return directory / "chunks" / f"{number:06d}.chunk"
