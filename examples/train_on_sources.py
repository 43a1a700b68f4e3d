"""Trains a tiny random model with TRL's SFTTrainer on a source tree, cold, then warm: the second preparation is a walk.

    .venv/bin/python examples/train_on_sources.py [TREE]

Without TREE: lmemo's own sources. Needs torch, transformers, datasets and trl; runs on a CPU in a few seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import lmemo
import lmemo.trl
import tokenizers
import transformers
from trl import SFTConfig, SFTTrainer

LENGTH = 128


def small_tokenizer(tree: Path) -> transformers.PreTrainedTokenizerFast:
    """A byte-level tokenizer of 2,000 tokens, trained on the tree itself."""
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["<eos>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator((path.read_text(errors="replace") for path in sorted(tree.rglob("*.py"))[:50]), trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>", pad_token="<eos>")


def train(data: lmemo.trl.TrainDataset, tokenizer: transformers.PreTrainedTokenizerFast, folder: Path) -> list[float]:
    """Six steps of a model that knows nothing; its losses."""
    transformers.set_seed(7)
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=LENGTH, vocab_size=len(tokenizer))
    args = SFTConfig(
        output_dir=str(folder / "out"), max_steps=6, per_device_train_batch_size=4, learning_rate=1e-2, logging_steps=3,
        report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, **data.config,
    )  # fmt: skip
    trainer = SFTTrainer(transformers.GPT2LMHeadModel(config), args=args, train_dataset=data.dataset, processing_class=tokenizer)
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main() -> None:
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]).resolve()
    tokenizer = small_tokenizer(tree)
    with tempfile.TemporaryDirectory() as folder:
        store = lmemo.Store(Path(folder) / "store")
        for name in ("cold", "warm"):
            begin = time.perf_counter()
            data = lmemo.trl.train_dataset(tree, tokenizer, sequence_len=LENGTH, store=store, include=["**/*.py", "**/*.md", "**/*.cpp"])
            seconds = time.perf_counter() - begin
            stats = data.run.stats
            losses = train(data, tokenizer, Path(folder))
            print(f"{name}: {stats.total_sections} sections, {stats.cache_hits} hits, {stats.cache_misses} tokenised, {seconds * 1000:.0f} ms; "
                  f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
