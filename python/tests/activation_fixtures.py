"""A cache of its own for every test of lmemo.activations, and states to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import lmemo
from lmemo import activations


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[Path]:
    """For every test of a file that imports it. Afterwards all settings are as they were."""
    activations.set_cache_backend(tmp_path / "store")
    yield tmp_path / "store"
    activations.set_cache_limit(None)
    activations.set_cache_dtype(None)
    activations.set_cache_compression(None)
    activations.set_cache_backend(lmemo.MemoryStore())


def save(prompt: str, layers: list[int], tokens: int = 3, dim: int = 8, model: str = "m") -> Any:
    """Random states of a prompt, as they were saved."""
    states = torch.randn(1, tokens, len(layers) * dim)
    activations.save_prompt_activations(model, prompt, layers, states, torch.ones(1, tokens, dtype=torch.int64))
    return states
