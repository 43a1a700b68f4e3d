"""Trainer and TRL on chunk sets: build, train some steps, grow, resume; every row once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from made_up_chunks import make_chunk_set
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import lmemo
from lmemo.torch import BlockDiagonalCollator, ChunkDataset, ChunkLoader, TrainingRows
from lmemo.trainer import ChunkSetCallback, checkpoint_info
from lmemo.training import TrainingPlan


def tiny_model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=500, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=64,
    )  # fmt: skip
    return LlamaForCausalLM(config)


class Seen:
    """A collate function that remembers the rows it was given."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.collate = BlockDiagonalCollator(dtype=torch.float32)

    def __call__(self, samples: Any) -> Any:
        batch = self.collate(samples)
        self.rows += [tuple(row) for row in batch["input_ids"].tolist()]
        return batch


def arguments(output: Path, **more: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(output), per_device_train_batch_size=4, gradient_accumulation_steps=2, report_to=[], logging_steps=1, use_cpu=True,
        disable_tqdm=True, remove_unused_columns=False, save_strategy="steps", learning_rate=1e-3, **more,
    )  # fmt: skip


def train(directory: Path, output: Path, epochs: float, *, save_steps: int, resume: Path | None = None, stop_at: int | None = None) -> tuple[Any, Seen]:
    rows = TrainingRows(ChunkDataset(directory, seed=5), epochs=epochs)
    plan = TrainingPlan(rows=len(rows.chunk_set), epochs=epochs, batch_size=4, gradient_accumulation=2, warmup_fraction=0.1)
    callback = ChunkSetCallback(rows, plan, resume_from_checkpoint=resume)
    steps = arguments(output, max_steps=stop_at or callback.steps, warmup_steps=callback.warmup_steps, save_steps=save_steps)
    seen = Seen()
    trainer = Trainer(tiny_model(), steps, train_dataset=rows, data_collator=seen, callbacks=[callback])
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return trainer, seen


def set_rows(directory: Path) -> Counter[tuple[int, ...]]:
    chunks = lmemo.ChunkSet(directory)
    return Counter(tuple(row) for row in chunks.batch(range(len(chunks))).input_ids.tolist())


def test_build_train_grow_resume(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2, 60)
    before = len(lmemo.ChunkSet(directory))
    _, first = train(directory, tmp_path / "run", 1, save_steps=4, stop_at=4)
    checkpoint = tmp_path / "run" / "checkpoint-4"
    info = checkpoint_info(checkpoint)
    assert (info["global_step"], info["consumed"], info["rows"], info["set"]) == (4, 32, before, lmemo.ChunkSet(directory).identity)

    make_chunk_set(directory, 2, 60)
    after = len(lmemo.ChunkSet(directory))
    trainer, rest = train(directory, tmp_path / "run", 1, save_steps=1000, resume=checkpoint)
    assert trainer.state.global_step == after // 8
    read = first.rows[:32] + rest.rows[: (after // 8 - 4) * 8]
    whole = set_rows(directory)
    assert Counter(read) <= whole and whole.total() - len(read) < 8  # All but what fills no step, and none twice.


def test_growth_in_the_second_epoch(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 100)
    before = len(lmemo.ChunkSet(directory))
    step = before // 8 + 2
    _, first = train(directory, tmp_path / "run", 2, save_steps=step, stop_at=step)
    make_chunk_set(directory, 1, 100)
    after = len(lmemo.ChunkSet(directory))
    trainer, rest = train(directory, tmp_path / "run", 2, save_steps=1000, resume=tmp_path / "run" / f"checkpoint-{step}")
    total = before + after
    assert trainer.state.global_step == total // 8
    read = first.rows[: step * 8] + rest.rows[: total // 8 * 8 - step * 8]
    assert Counter(read[:before]) == Counter(first.rows[:before])
    second = Counter(read[before:])
    assert second <= set_rows(directory) and max(second.values()) == 1


def test_resume_is_the_uninterrupted_training(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 100)
    whole, all_seen = train(directory, tmp_path / "whole", 1, save_steps=3)
    _, rest = train(directory, tmp_path / "again", 1, save_steps=1000, resume=tmp_path / "whole" / "checkpoint-3")
    assert all_seen.rows[24:] == rest.rows
    losses = [entry["loss"] for entry in whole.state.log_history if "loss" in entry]
    assert len(losses) == len(lmemo.ChunkSet(directory)) // 8


def test_a_foreign_set_or_checkpoint_is_refused(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 100)
    train(directory, tmp_path / "run", 1, save_steps=2, stop_at=2)
    other = make_chunk_set(tmp_path / "other", 1, 90)
    with pytest.raises(lmemo.Incompatible, match="is not a continuation"):
        train(other, tmp_path / "run", 1, save_steps=2, resume=tmp_path / "run" / "checkpoint-2")
    with pytest.raises(lmemo.InvalidArgument, match="without ChunkSetCallback"):
        checkpoint_info(tmp_path)


def test_plain_trainer_without_callback(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 60)
    seen = Seen()
    dataset = ChunkDataset(directory, seed=1)
    Trainer(tiny_model(), arguments(tmp_path / "run", num_train_epochs=1), train_dataset=dataset, data_collator=seen).train()
    assert Counter(seen.rows) == set_rows(directory)


def test_trl(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from trl import SFTConfig, SFTTrainer

    directory = make_chunk_set(tmp_path / "set", 1, 60)
    rows = TrainingRows(ChunkDataset(directory, seed=5), epochs=1)
    plan = TrainingPlan(rows=len(rows.chunk_set), batch_size=4)
    callback = ChunkSetCallback(rows, plan)
    words = {f"w{number}": number for number in range(500)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(words, "w0")), eos_token="w1", pad_token="w0")
    config = SFTConfig(
        output_dir=str(tmp_path / "run"), per_device_train_batch_size=4, max_steps=callback.steps, report_to=[], use_cpu=True, disable_tqdm=True,
        save_steps=2, dataset_kwargs={"skip_prepare_dataset": True}, gradient_checkpointing=False, bf16=False, logging_steps=1,
    )  # fmt: skip
    trainer = SFTTrainer(tiny_model(), args=config, train_dataset=rows.as_hf_dataset(), processing_class=tokenizer, callbacks=[callback])
    seen: list[tuple[int, ...]] = []
    collate = trainer.data_collator

    def remember(samples: Any) -> Any:
        batch = collate(samples)
        seen.extend(tuple(row) for row in batch["input_ids"].tolist())
        return batch

    trainer.data_collator = remember
    trainer.train()
    assert trainer.state.global_step == callback.steps
    assert Counter(seen[: callback.steps * 4]) <= set_rows(directory)
    assert checkpoint_info(tmp_path / "run" / "checkpoint-2")["consumed"] == 8


RANK = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import chunk_trainer_test as test
from lmemo.torch import ChunkDataset, TrainingRows
from lmemo.trainer import ChunkSetCallback
from lmemo.training import TrainingPlan
directory, output = Path(sys.argv[2]), Path(sys.argv[3])
rows = TrainingRows(ChunkDataset(directory, seed=5), epochs=1)
plan = TrainingPlan(rows=len(rows.chunk_set), batch_size=4, gradient_accumulation=2, world_size=2)
resume = output / "checkpoint-3"
callback = ChunkSetCallback(rows, plan, resume_from_checkpoint=resume)
seen = test.Seen()
arguments = test.arguments(output, max_steps=callback.steps, save_steps=1000, ddp_backend="gloo")
test.Trainer(test.tiny_model(), arguments, train_dataset=rows, data_collator=seen, callbacks=[callback]).train(resume_from_checkpoint=str(resume))
json.dump([callback.steps, seen.rows], open(output / f"rank-{os.environ['RANK']}.json", "w"))
"""


def test_trainer_resumes_with_two_ranks_under_torchrun(tmp_path: Path) -> None:
    directory = make_chunk_set(tmp_path / "set", 2, 60)
    output = tmp_path / "run"
    _, first = train(directory, output, 1, save_steps=3, stop_at=3)
    make_chunk_set(directory, 1, 60)
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script), here, str(directory), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-20000:]
    found = [json.loads((output / f"rank-{rank}.json").read_text()) for rank in range(2)]
    steps = found[0][0]
    read = first.rows[:24] + [tuple(row) for _, rows in found for row in rows[: (steps - 3) * 8]]
    whole = set_rows(directory)
    assert Counter(read) <= whole and whole.total() - len(read) < 16


class WithItsLoader(Trainer):  # type: ignore[misc]
    """A Trainer whose own loader is a ChunkLoader, as Trainer's documentation tells to make one."""

    def get_train_dataloader(self) -> Any:
        return self.accelerator.prepare(self.loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_trainer_with_a_chunk_loader_of_its_own(tmp_path: Path, workers: int) -> None:
    directory = make_chunk_set(tmp_path / "set", 1, 60)
    dataset = ChunkDataset(directory, seed=1, columns=("input_ids", "labels", "position_ids"))
    trainer = WithItsLoader(tiny_model(), arguments(tmp_path / "run", num_train_epochs=2), train_dataset=dataset)
    trainer.loader = ChunkLoader(dataset, 4, num_workers=workers, persistent_workers=workers > 0, pin_memory=False)
    trainer.train()
    assert trainer.state.global_step == 2 * -(-len(trainer.loader) // 2)
    assert trainer.state.epoch == 2
