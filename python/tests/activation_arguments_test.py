"""What lmemo.activations refuses: nothing wrong is stored, served or taken for something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from activation_fixtures import fresh_cache, save

from lmemo import activations
from lmemo.activations import CachedExtractor

_ = fresh_cache
MASK = torch.ones(1, 3, dtype=torch.int64)
LOGITS = torch.randn(1, 3, 50)


class Small:
    model_name = "small"
    layer_indices: Any = [0, 1]
    batch_size = 4

    def extract(self, prompts: list[str], remote: bool = False) -> Any:
        return torch.ones(len(prompts), 3, 8), torch.ones(len(prompts), 3, dtype=torch.int64)


def test_an_empty_path_is_no_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(ValueError, match="path of a store is empty"):
        activations.set_cache_backend("")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("layers", [[0.5], "0", ["0"], [None]])
def test_a_layer_is_a_whole_number(layers: Any) -> None:
    save("p", [0])
    with pytest.raises(TypeError):
        activations.load_prompt_activations("m", "p", layers)
    extractor = Small()
    extractor.layer_indices = layers
    with pytest.raises(TypeError):
        CachedExtractor(extractor).extract(["p"])


@pytest.mark.parametrize("layers", [np.array([1, 0]), torch.tensor([1, 0]), (1, 0), range(1, -1, -1)])
def test_layers_of_any_kind_of_whole_numbers(layers: Any) -> None:
    states = save("p", [0, 1], dim=8)
    loaded, _ = activations.load_prompt_activations("m", "p", layers)
    assert torch.equal(loaded, torch.cat([states[..., 8:], states[..., :8]], dim=-1))


@pytest.mark.parametrize(
    ("logits", "mask"),
    [(LOGITS, torch.ones(1, 5)), (LOGITS, torch.ones(1, 2)), (torch.randn(2, 3, 50), MASK), (torch.randn(3, 50), MASK), (torch.randn(1, 3), MASK)],
)
def test_logits_have_the_tokens_of_their_mask(logits: Any, mask: Any) -> None:
    with pytest.raises(ValueError):
        activations.save_prompt_logits("m", "p", logits, mask)
    with pytest.raises(ValueError):
        activations.save_prompt_topk_logits("m", "p", logits, logits.to(torch.int64), mask)
    assert activations.discover_cached("m", "p") is None


def test_top_k_is_a_number_from_one_to_the_vocabulary() -> None:
    for top_k, error in ((0, ValueError), (-1, ValueError), (51, ValueError), (1.5, TypeError), ("3", TypeError), (True, TypeError)):
        with pytest.raises(error, match="top_k"):
            activations.save_prompt_logits("m", "p", LOGITS, MASK, top_k=top_k)  # type: ignore[arg-type]
    activations.save_prompt_logits("m", "p", LOGITS, MASK, top_k=np.int64(5))  # type: ignore[arg-type]
    for top_k, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("3", TypeError)):
        with pytest.raises(error, match="top_k"):
            activations.load_prompt_logits("m", "p", top_k)  # type: ignore[arg-type]
        with pytest.raises(error, match="top_k"):
            activations.is_prompt_logits_cached("m", "p", top_k)  # type: ignore[arg-type]


def test_values_and_indices_of_top_k_belong_together() -> None:
    values = torch.randn(1, 3, 5)
    with pytest.raises(ValueError, match="differ in shape"):
        activations.save_prompt_topk_logits("m", "p", values, torch.zeros(1, 3, 4, dtype=torch.int64), MASK)
    with pytest.raises(TypeError, match="token ids"):
        activations.save_prompt_topk_logits("m", "p", values, torch.rand(1, 3, 5), MASK)
    assert activations.discover_cached("m", "p") is None


@pytest.mark.parametrize("mask", [torch.ones(1, 3, 1), torch.tensor(1)])
def test_a_mask_has_one_row(mask: Any) -> None:
    with pytest.raises(ValueError, match="attention_mask"):
        activations.save_prompt_activations("m", "p", [0], torch.randn(1, 3, 8), mask)


@pytest.mark.parametrize("thing", [None, [1.0, 2.0, 3.0], np.ones(3)])
def test_what_is_no_tensor_is_a_type_error_that_names_it(thing: Any) -> None:
    attempts = [
        (lambda: activations.save_prompt_activations("m", "p", [0], thing, MASK), "activations"),
        (lambda: activations.save_prompt_pooled_activations("m", "p", [0], thing, "mean"), "pooled_activations"),
        (lambda: activations.save_prompt_logits("m", "p", thing, MASK), "logits"),
        (lambda: activations.save_prompt_topk_logits("m", "p", LOGITS, thing, MASK), "indices"),
        (lambda: activations.save_prompt_perplexity("m", "p", thing), "perplexity_features"),
        (lambda: activations.save_prompt_router_logits("m", "p", thing), "router_logits"),
        (lambda: activations.save_prompt_router_logits("m", "p", {0: thing}), "router_logits"),
    ]
    for attempt, name in attempts:
        with pytest.raises(TypeError, match=name):
            attempt()
    assert activations.discover_cached("m", "p") is None


@pytest.mark.parametrize("thing", [1, b"m", ["m"]])
def test_a_model_is_a_name_or_an_extractor(thing: Any) -> None:
    for ask in (activations.cache_info, activations.invalidate_extraction_cache):
        with pytest.raises(TypeError, match="model"):
            ask(thing)


def test_no_prompts_have_no_rows_to_stack() -> None:
    for load in (lambda: activations.load_layer_last_token("m", [], 0), lambda: activations.load_pooled_batch("m", [], [0])):
        with pytest.raises(ValueError, match="at least one"):
            load()


def test_max_retries_is_no_less_than_none() -> None:
    for retries, error in ((-1, ValueError), ("3", TypeError), (0.5, TypeError)):
        with pytest.raises(error):
            CachedExtractor(Small()).extract(["p"], remote=True, max_retries=retries)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["states", "masks"])
def test_an_extractor_gives_tensors(what: str) -> None:
    class Wrong(Small):
        def extract(self, prompts: list[str], remote: bool = False) -> Any:
            states, masks = super().extract(prompts)
            return (states.numpy(), masks) if what == "states" else (states, None)

    with pytest.raises(TypeError, match=what):
        CachedExtractor(Wrong()).extract(["p"])
    assert activations.discover_cached("small", "p") is None
