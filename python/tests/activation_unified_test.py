"""UnifiedCache: activations, perplexities and logits from one forward pass, and only what is missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from activation_fixtures import fresh_cache  # noqa: F401
from activation_models import Passes, prompts_of, twelve_layers
from tiny_models import tiny_tokenizer

from lmemo import activations
from lmemo.activations import UnifiedCache, pool

PROMPTS = prompts_of(20, seed=5)


@pytest.fixture
def model() -> Any:
    return twelve_layers()


def unified_of(model: Any, **options: Any) -> UnifiedCache:
    return UnifiedCache(model, **{"layers": [-1, 3], "batch_size": 8, "tokenizer": tiny_tokenizer(), "name": "tiny", **options})


def directly(model: Any, prompt: str) -> Any:
    inputs = tiny_tokenizer()([prompt], return_tensors="pt")
    with torch.no_grad():
        return inputs["input_ids"][0], model(input_ids=inputs["input_ids"], output_hidden_states=True)


def features_of(model: Any, prompt: str) -> Any:
    ids, output = directly(model, prompt)
    if len(ids) < 2:
        return np.ones(3, dtype=np.float32)
    losses = torch.nn.functional.cross_entropy(output.logits[0, :-1], ids[1:], reduction="none")
    return torch.stack([losses.mean(), losses.min(), losses.max()]).exp().numpy()


def test_one_pass_for_all_and_none_for_what_is_stored(model: Any) -> None:
    unified = unified_of(model, cache_logits=True)
    passes = Passes(model)
    stats = unified.warmup(PROMPTS)
    assert (passes.passes, passes.rows) == (3, 20)
    assert (stats.total_prompts, stats.activations_extracted, stats.perplexity_extracted, stats.logits_extracted) == (20, 20, 20, 20)
    assert stats.cache_hit_rate == 0
    stats = unified.warmup(PROMPTS)
    unified.get_activations(PROMPTS), unified.get_perplexity(PROMPTS), unified.get_logits(PROMPTS)
    assert passes.passes == 3
    assert (stats.activations_cached, stats.perplexity_cached, stats.logits_cached, stats.cache_hit_rate) == (20, 20, 20, 1)
    assert (stats.activations_extracted, stats.perplexity_extracted, stats.logits_extracted) == (0, 0, 0)


@pytest.mark.parametrize("is_off", [False, True])
def test_what_comes_back_is_the_models_own(model: Any, is_off: bool) -> None:
    activations.set_cache_limit(0 if is_off else None)
    unified = unified_of(model, cache_logits=True, logit_top_k=4)
    asked = [*PROMPTS, PROMPTS[3]]
    for _ in range(2):
        vectors, mask = unified.get_activations(asked)
        assert mask is None and vectors.shape == (21, 2 * 16)
        perplexities = unified.get_perplexity(asked)
        assert perplexities.shape == (21, 3) and perplexities.dtype == np.float32
        logits = unified.get_logits(asked)
        assert logits.values.shape == (21, 1, 4) and logits.indices.dtype == torch.int32 and (logits.top_k, logits.positions) == (4, "last")
        for row, prompt in enumerate(asked):
            _, output = directly(model, prompt)
            np.testing.assert_allclose(perplexities[row], features_of(model, prompt), rtol=1e-4)
            torch.testing.assert_close(vectors[row, :16], output.hidden_states[4][0, -1], rtol=1e-4, atol=1e-5)  # Ascending: layer 3, then 11.
            torch.testing.assert_close(logits.values[row, 0], output.logits[0, -1].topk(4).values, rtol=1e-4, atol=1e-5)


def test_states_of_all_tokens(model: Any) -> None:
    unified = unified_of(model, cache_pooled=False, compute_perplexity=False)
    states, mask = unified.get_activations(PROMPTS)
    pooled, _ = unified_of(model, pooling="mean", compute_perplexity=False).get_activations(PROMPTS)
    assert torch.equal(pool(states, mask, "mean"), pooled)


def test_only_what_is_lacking_is_computed(model: Any) -> None:
    unified_of(model, compute_perplexity=False).warmup(PROMPTS[:10])
    passes = Passes(model)
    stats = unified_of(model).warmup(PROMPTS)
    assert passes.rows == 20 and (stats.activations_cached, stats.perplexity_cached) == (10, 0)
    unified_of(model).get_perplexity(PROMPTS)
    assert passes.rows == 20


def test_a_missing_layer_is_told(model: Any) -> None:
    unified_of(model, layers=[3]).warmup(PROMPTS)
    with pytest.warns(UserWarning, match=r"missing layer\(s\) \[11\] \(found layers \[3\]\)"):
        unified_of(model).warmup(PROMPTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unified_of(model).warmup(PROMPTS)


def test_logits_of_the_last_position_do_not_pass_for_those_of_all(model: Any) -> None:
    last = unified_of(model, cache_logits=True)
    last_values = last.get_logits(PROMPTS).values
    unified = unified_of(model, cache_logits=True, logit_positions="all")
    lengths = [len(directly(model, prompt)[0]) for prompt in PROMPTS]
    passes = Passes(model)
    assert unified.get_logits(PROMPTS).values.shape[:2] == (20, max(lengths))
    assert passes.rows == sum(length > 1 for length in lengths)
    assert torch.equal(last.get_logits(PROMPTS).values, last_values)


def test_prompts_of_one_token_and_none(model: Any) -> None:
    unified = unified_of(model, cache_logits=True)
    assert unified.get_perplexity(["cat"]).tolist() == [[1, 1, 1]]
    assert unified.get_perplexity([]).shape == (0, 3)
    assert len(unified.get_logits([]).values) == 0 and len(unified.get_activations([])[0]) == 0
    assert unified.warmup([]).cache_hit_rate == 0


def test_what_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="compute_perplexity=False"):
        unified_of(model, compute_perplexity=False).get_perplexity(PROMPTS)
    with pytest.raises(ValueError, match="cache_logits=False"):
        unified_of(model).get_logits(PROMPTS)
    for wrong in ({"pooling": "all"}, {"logit_positions": "first"}, {"logit_top_k": 0}, {"backend": "nnsight"}, {"dtype": "invalid"}, {"dtype": "int8"}):
        with pytest.raises(ValueError):
            unified_of(model, **wrong)
    with pytest.raises(TypeError):
        unified_of(model).warmup("one prompt")
    with pytest.raises(ValueError, match="no logits"):
        unified_of(model.transformer).warmup(PROMPTS)
