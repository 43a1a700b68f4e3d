"""A small model of twelve layers, prompts of different lengths, and a count of forward passes."""

from __future__ import annotations

import random
from typing import Any

import torch
from tiny_models import WORDS, tiny_tokenizer
from transformers import GPT2Config, GPT2LMHeadModel

from lmemo.activations import ActivationExtractor


def twelve_layers(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=len(WORDS) + 3, n_positions=64, n_embd=16, n_layer=12, n_head=2, bos_token_id=0, eos_token_id=1)
    return GPT2LMHeadModel(config).eval()


def prompts_of(count: int, seed: int = 0) -> list[str]:
    """All different, from one word to twenty-four."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        made[" ".join(chance.choices(WORDS, k=chance.randint(1, 24)))] = None
    return list(made)


class Passes:
    """Counts the forward passes of a model, and the prompts in them."""

    def __init__(self, model: Any) -> None:
        self.passes = self.rows = 0
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _module: Any, _args: Any, options: dict[str, Any]) -> None:
        self.passes += 1
        self.rows += len(options["input_ids"])

    def reset(self) -> None:
        self.passes = self.rows = 0


def extractor_of(model: Any, **options: Any) -> ActivationExtractor:
    return ActivationExtractor(model, tokenizer=tiny_tokenizer(), **{"layers": "all", "batch_size": 16, "name": "tiny", **options})
