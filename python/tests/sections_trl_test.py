"""Rows beside TRL's own preparation of the same texts with the same tokenizer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import lmemo
import lmemo.trl
import pytest
import tokenizer_vocabularies
import tokenizers
import transformers
from nasty_texts import nasty_texts
from trl import SFTConfig, SFTTrainer

ROOT = Path(__file__).resolve().parents[2]


# Llama-3 begins every text with a token of its own, and takes three bytes an id.
ENDS = {"gpt2": "<|endoftext|>", "llama3": "<|end_of_text|>"}


@pytest.fixture(scope="module", params=ENDS)
def tokenizer(request: pytest.FixtureRequest) -> transformers.PreTrainedTokenizerFast:
    backend = tokenizers.Tokenizer.from_str(tokenizer_vocabularies.json_of(request.param))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=ENDS[request.param], pad_token=ENDS[request.param])


def prepared_by_trl(texts: list[str], tokenizer: Any, max_length: int, folder: Path) -> list[list[int]]:
    config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, n_positions=max_length, vocab_size=len(tokenizer))
    args = SFTConfig(output_dir=str(folder), max_length=max_length, report_to=[], use_cpu=True, dataset_num_proc=None)
    trainer = SFTTrainer(
        transformers.GPT2LMHeadModel(config), args=args, train_dataset=datasets.Dataset.from_dict({"text": texts}), processing_class=tokenizer
    )
    rows: list[list[int]] = trainer.train_dataset["input_ids"][:]
    assert trainer.train_dataset["labels"][:] == rows
    return rows


def test_rows_are_those_of_trl(tokenizer: Any, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    real = [path for folder in ("src", "python", "tests", "docs", "examples") for path in sorted((ROOT / folder).rglob("*.*")) if path.is_file()]
    texts: list[bytes] = []
    for path in real:
        content = path.read_bytes()
        if b"\0" not in content and len(content) < 40_000 and path.suffix in (".cpp", ".h", ".py", ".md", ".txt"):
            texts.append(content)
    texts = texts[:220]
    assert len(texts) >= 200
    texts += [b"", b"\xef\xbb\xbf", b"\r", b"a\rb\r", b"a\r\nb", b"no newline at the end", b"x" * 100_000, "😀 emoji 👩‍👩‍👧".encode(), "e\u0301 combining \u0323".encode()]
    end = tokenizer.eos_token.encode()
    texts += [b"text " + end, end + b" inside " + end + b" it", end, end + b"\n", b"<|endoftext|> or <|eot_id|> of another"]
    texts += [text.encode() for text in nasty_texts(60) if "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)]
    for number, content in enumerate(texts):
        (tree / f"{number // 50}").mkdir(parents=True, exist_ok=True)
        (tree / f"{number // 50}" / f"{number:04}.txt").write_bytes(content)
    normalized = [text.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n") for text in texts]

    store = lmemo.Store(tmp_path / "store")
    for max_length in (512, 64):
        data = lmemo.trl.train_dataset(tree, tokenizer, sequence_len=max_length, store=store)
        expected = prepared_by_trl(normalized, tokenizer, max_length, tmp_path / "out")
        assert data.dataset["input_ids"][:] == expected
        assert data.dataset["labels"][:] == expected
    assert data.run.stats.cache_misses == 0
    assert data.run.stats.total_sections == len(texts)


def test_sft_trainer_takes_the_rows_as_prepared(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(8):
        (tmp_path / "tree" / f"{number}.py").write_text(f"def f{number}():\n    return {number}\n" * 9)
    data = lmemo.trl.train_dataset(tmp_path / "tree", tokenizer, sequence_len=32, store=lmemo.Store(tmp_path / "store"))
    config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, n_positions=32, vocab_size=len(tokenizer))
    args = SFTConfig(output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, report_to=[], use_cpu=True, save_strategy="no",
                     **data.config)  # fmt: skip
    trainer = SFTTrainer(transformers.GPT2LMHeadModel(config), args=args, train_dataset=data.dataset, processing_class=tokenizer)
    assert trainer.train_dataset is data.dataset
    assert trainer.train().global_step == 2


def test_the_example_trains_cold_and_warm_alike(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "examples" / "train_on_sources.py", ROOT / "python" / "lmemo"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stderr
    number, losses = r"(\d+)", r"loss ([\d.]+ -> [\d.]+)"
    (cold,) = re.findall(rf"cold: {number} sections, 0 hits, {number} tokenised, .* ms; {losses}", ran.stdout)
    (warm,) = re.findall(rf"warm: {number} sections, {number} hits, 0 tokenised, .* ms; {losses}", ran.stdout)
    assert cold[0] == cold[1] == warm[0] == warm[1]
    assert cold[2] == warm[2]
