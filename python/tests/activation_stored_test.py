"""What is stored is handed out at once: bit for bit what a run through all steps gives, and counted the same."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from activation_fixtures import fresh_cache  # noqa: F401

from lmemo import activations
from lmemo.activations import CachedExtractor

PROMPTS = ["one", "two words", "a prompt that is longer than the others: " + "and longer " * 40, "ünï\ud800code", ""]


class Stored:
    """An extractor whose model must not be asked."""

    model_name, batch_size = "m", 4

    def __init__(self, layers: list[int], pooling: str | None = None, dtype: Any = None) -> None:
        self.layer_indices, self.pooling, self.dtype = layers, pooling, dtype

    def extract(self, prompts: list[str], remote: bool = False) -> tuple[Any, Any]:
        raise AssertionError(f"not stored: {prompts}")


def save_all(layers: list[int], dtype: Any = torch.float32) -> None:
    for tokens, prompt in enumerate(PROMPTS, 3):
        mask = torch.ones(1, tokens, dtype=torch.int64)
        mask[0, 1] = 0  # A token in the middle that does not count stays where it is.
        activations.save_prompt_activations("m", prompt, layers, torch.randn(1, tokens, len(layers) * 8).to(dtype), mask)
        activations.save_prompt_pooled_activations("m", prompt, layers, torch.randn(1, len(layers) * 8).to(dtype), "mean")


def by_a_run(extractor: Stored, prompts: list[str]) -> Any:
    """With the log on, every step is taken."""
    logger = logging.getLogger("lmemo.activations")
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        return CachedExtractor(extractor).extract(prompts)
    finally:
        logger.setLevel(level)


@pytest.mark.parametrize("pooling", [None, "mean"])
@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16", "float32"])
def test_what_comes_at_once_is_what_a_run_gives(dtype: Any, compression: Any, pooling: str | None) -> None:
    activations.set_cache_dtype(dtype)
    activations.set_cache_compression(compression)
    save_all([0, 3, 7])
    chosen: Any
    for chosen in ([PROMPTS[0]], [PROMPTS[3]], PROMPTS[1:3], PROMPTS, [PROMPTS[2], PROMPTS[0], PROMPTS[2]]):
        for layers in ([0], [7], [3, 0], [0, 3, 7]):
            states, mask = CachedExtractor(Stored(layers, pooling)).extract(chosen)  # type: ignore[misc]
            its_states, its_mask = by_a_run(Stored(layers, pooling), chosen)
            assert states.dtype == its_states.dtype and mask.dtype == its_mask.dtype
            assert states.shape == its_states.shape == (len(chosen), mask.shape[1], len(layers) * 8)
            assert torch.equal(states.contiguous().view(torch.int16), its_states.view(torch.int16)) and torch.equal(mask, its_mask)


def test_float32_is_rounded_where_half_precision_is_wanted_and_never_the_other_way() -> None:
    save_all([0, 1])
    for layers in ([0], [1, 0]):
        exact, _ = CachedExtractor(Stored(layers)).extract(PROMPTS[:1])  # type: ignore[misc]
        for dtype in (torch.float16, torch.bfloat16):
            states, _ = CachedExtractor(Stored(layers, dtype=dtype)).extract(PROMPTS[:1])  # type: ignore[misc]
            assert states.dtype == dtype and torch.equal(states, exact.to(dtype))
    activations.clear_cache()
    save_all([0, 1], torch.float16)
    with pytest.raises(AssertionError, match="not stored"):
        CachedExtractor(Stored([0], dtype=torch.float32)).extract(PROMPTS[:1])


def test_two_dtypes_without_a_wish_are_refused_in_words() -> None:
    activations.save_prompt_activations("m", "a", [0], torch.randn(1, 2, 8), torch.ones(1, 2))
    activations.save_prompt_activations("m", "b", [0], torch.randn(1, 2, 8).half(), torch.ones(1, 2))
    with pytest.raises(ValueError, match="different dtypes"):
        CachedExtractor(Stored([0])).extract(["a", "b"])


def test_what_is_returned_is_yours_to_write_to() -> None:
    save_all([0])
    activations.get_backend().flush()
    first, its_mask = CachedExtractor(Stored([0])).extract(PROMPTS[:1])  # type: ignore[misc]
    kept = first.clone()
    first.zero_()
    its_mask.zero_()
    again, mask = CachedExtractor(Stored([0])).extract(PROMPTS[:1])  # type: ignore[misc]
    assert torch.equal(again, kept) and mask.tolist() == [[1, 0, 1]]
    loaded, _ = activations.load_prompt_activations("m", PROMPTS[0], [0])
    loaded.zero_()
    assert torch.equal(activations.load_prompt_layer("m", PROMPTS[0], 0), kept)


def test_a_tensor_outlives_the_store_and_the_entry(fresh_cache: Path) -> None:  # noqa: F811
    save_all([0])
    activations.get_backend().flush()
    states, mask = CachedExtractor(Stored([0])).extract(PROMPTS[:1])  # type: ignore[misc]
    kept = states.clone()
    activations.clear_cache()
    activations.set_cache_backend(fresh_cache.parent / "other")
    assert torch.equal(states, kept) and mask.tolist() == [[1, 0, 1]]


def test_a_miss_is_counted_once_and_what_is_there_is_found_once() -> None:
    save_all([0, 1])

    def counted(prompts: list[str], layers: list[int]) -> tuple[int, int]:
        before = activations.get_backend().stats()
        try:
            CachedExtractor(Stored(layers)).extract(prompts)
        except AssertionError:
            pass
        after = activations.get_backend().stats()
        return after.hits - before.hits, after.misses - before.misses

    assert counted(PROMPTS[:1], [0]) == (2, 0)  # The mask and the layer.
    assert counted(PROMPTS[:1], [0, 1]) == (3, 0)
    assert counted(PROMPTS, [0, 1]) == (15, 0)
    _, at_once = counted(["never seen"], [0])
    before = activations.get_backend().stats().misses
    with pytest.raises(AssertionError):
        by_a_run(Stored([0]), ["never seen either"])
    assert at_once == activations.get_backend().stats().misses - before


def test_a_mask_that_does_not_fit_its_states_is_no_hit() -> None:
    save_all([0, 1])
    activations._save_record("m", PROMPTS[0], "mask", [torch.ones(9, dtype=torch.int64)], stored=None)
    for layers in ([0], [0, 1]):
        with pytest.raises(AssertionError, match="not stored"):
            CachedExtractor(Stored(layers)).extract(PROMPTS[:1])
        with pytest.raises(FileNotFoundError):
            activations.load_prompt_activations("m", PROMPTS[0], layers)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, torch.float32, torch.bfloat16])
def test_a_mask_of_any_dtype_comes_back_as_it_was_and_without_the_padding(dtype: Any) -> None:
    mask = torch.tensor([[0, 0, 1, 0, 1, 0]]).to(dtype)
    states = torch.randn(1, 6, 8)
    activations.save_prompt_activations("m", "p", [0], states, mask)
    loaded, its_mask = activations.load_prompt_activations("m", "p", [0])
    assert torch.equal(loaded, states[:, 2:5]) and its_mask.dtype == dtype and its_mask.tolist() == [[1, 0, 1]]
    activations.save_prompt_activations("m", "q", [0], states, torch.zeros(1, 6).to(dtype))
    loaded, its_mask = activations.load_prompt_activations("m", "q", [0])
    assert loaded.shape == (1, 0, 8) and its_mask.shape == (1, 0)


def test_states_are_saved_from_wherever_they_lie() -> None:
    whole = torch.randn(1, 5, 24)
    for name, states in {
        "columns of a wider tensor": whole[:, :, 8:16],
        "transposed": whole[:, :, :8].transpose(1, 2)[:, :5].transpose(1, 2),
        "every other column": whole[:, :, ::2][:, :, :8],
        "every other token": whole.repeat(1, 2, 1)[:, ::2, :8],
        "with a gradient": whole[:, :, :8].clone().requires_grad_(True),
    }.items():
        mask = torch.ones(1, 10, dtype=torch.int64)[:, ::2]
        activations.save_prompt_activations("m", name, [0], states, mask)
        loaded, its_mask = activations.load_prompt_activations("m", name, [0])
        assert torch.equal(loaded, states.detach()[:, :, :8]), name
        assert its_mask.tolist() == [[1, 1, 1, 1, 1]]


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_last_tokens_of_many_prompts_are_one_tensor(dtype: Any, compression: Any) -> None:
    activations.set_cache_dtype(dtype)
    activations.set_cache_compression(compression)
    save_all([0, 3])
    for chosen in (PROMPTS, PROMPTS[:1], [PROMPTS[2], PROMPTS[0], PROMPTS[2]]):
        last = activations.load_layer_last_token("m", chosen, 3)
        one_by_one = torch.cat([activations.load_prompt_layer("m", prompt, 3)[:, -1] for prompt in chosen])
        assert last.shape == (len(chosen), 8) and last.dtype == one_by_one.dtype and torch.equal(last, one_by_one)
    last.zero_()
    assert not torch.equal(activations.load_layer_last_token("m", chosen, 3), last)
    with pytest.raises(FileNotFoundError, match="never seen"):
        activations.load_layer_last_token("m", [*PROMPTS, "never seen"], 3)
    activations.save_prompt_activations("m", "nothing counts", [3], torch.randn(1, 2, 8), torch.zeros(1, 2))
    with pytest.raises(FileNotFoundError, match="nothing counts"):
        activations.load_layer_last_token("m", [*PROMPTS, "nothing counts"], 3)
