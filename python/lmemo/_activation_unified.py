"""Activations, perplexities and logits of a language model from one forward pass: UnifiedCache of lmemo.activations."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _activation_settings as settings
from . import activations as cache
from ._activation_extraction import ActivationExtractor, CachedExtractor, pooled_rows


@dataclass
class WarmupStats:
    """What a warm-up found stored, and what it computed."""

    total_prompts: int
    activations_cached: int
    activations_extracted: int
    perplexity_cached: int
    perplexity_extracted: int
    elapsed_seconds: float
    logits_cached: int = 0
    logits_extracted: int = 0

    @property
    def cache_hit_rate(self) -> float:
        """The share of prompts whose activations were stored."""
        return self.activations_cached / self.total_prompts if self.total_prompts else 0.0


@dataclass
class CachedLogits:
    """Logits (prompts, positions, vocabulary), or the `top_k` largest (prompts, positions, top_k) with their token ids. Of all positions,
    shorter prompts are padded with zeros on the right."""

    values: Any
    indices: Any
    top_k: int | None
    positions: str


@dataclass
class _Left:
    """What passes left behind besides activations, by prompt; what is returned at once is kept, for where caching is off it is nowhere else."""

    keeps_perplexities: bool = False
    keeps_logits: bool = False
    perplexities: dict[str, Any] = field(default_factory=dict)
    logits: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)  # All that a pass was made for.


class UnifiedCache:
    """Everything about a prompt from one forward pass, and only what is not stored yet.

        unified = UnifiedCache("gpt2", layers=[3, -1])
        unified.warmup(prompts)
        vectors, _ = unified.get_activations(prompts)      # (prompts, layers × dim), the last token's
        unified.get_perplexity(prompts)                    # (prompts, 3): mean, smallest and largest of a token

    `model` is a path, a name on the hub, or a loaded model with its `tokenizer`. With `cache_pooled` only vectors pooled by `pooling` are kept, else
    the states of all tokens. Layers come in ascending order. Where caching is off, everything is computed and returned all the same.
    """

    def __init__(
        self, model: Any, layers: int | Sequence[int] | str = "all", compute_perplexity: bool = True, device: str = "auto", remote: bool = False,
        batch_size: int = 8, cache_pooled: bool = True, pooling: str = "last_token", backend: Literal["local"] = "local", dtype: Any = None,
        cache_logits: bool = False, logit_top_k: int | None = None, logit_positions: Literal["last", "all"] = "last", *, tokenizer: Any = None,
        **identity: Any,
    ) -> None:  # fmt: skip
        if backend != "local":
            raise ValueError(f"backend: expected 'local', got {backend!r}; wrap an extractor of another one with CachedExtractor")
        if logit_positions not in ("last", "all"):
            raise ValueError(f"Invalid logit_positions: {logit_positions!r}. Must be 'last' or 'all'.")
        if logit_top_k is not None and logit_top_k < 1:
            raise ValueError(f"logit_top_k: expected at least 1, got {logit_top_k}")
        # It knows the poolings, and refuses others.
        self.extractor = ActivationExtractor(
            model, device, layers, batch_size, tokenizer=tokenizer, pooling=pooling if cache_pooled else None, dtype=dtype, **identity
        )
        self.compute_perplexity = compute_perplexity
        self.remote = remote
        self.batch_size = batch_size
        self.cache_pooled = cache_pooled
        self.pooling = pooling
        self.dtype = dtype
        self.cache_logits = cache_logits
        self.logit_top_k = logit_top_k
        self.logit_positions = logit_positions
        self._layers: list[int] | None = None
        self._cached = CachedExtractor(_Pass(self, None))

    @property
    def model(self) -> Any:
        """The model, loaded at first use."""
        return self.extractor.model

    @property
    def model_name(self) -> Any:
        """Under which everything is stored: a `ModelIdentity`, which is a str."""
        return self.extractor.model_name

    @property
    def layer_indices(self) -> list[int]:
        """The chosen layers, from 0, ascending."""
        if self._layers is None:
            self._layers = sorted(set(self.extractor.layer_indices))
        return self._layers

    def warmup(
        self, prompts: Sequence[str], remote: bool | None = None, max_retries: int | None = None, verify_cache: bool = True
    ) -> WarmupStats:
        """Computes and stores what is missing of these prompts. By the index alone, hence always by layers: `verify_cache` changes nothing."""
        started = time.monotonic()
        listed = cache._prompts_of(prompts)
        states, perplexities, _, partly, found = cache.batch_check_cache_status(
            self.model_name, listed, self.layer_indices, self.pooling if self.cache_pooled else None, self.compute_perplexity
        )
        logits = [prompt for prompt in listed if not self._has_logits(prompt)] if self.cache_logits else []
        if partly and found is not None:
            warnings.warn(
                f"Cache exists for {partly} prompt(s) but is missing layer(s) {sorted(set(self.layer_indices) - found)} (found layers {sorted(found)}); "
                "only these are extracted, but it takes a forward pass again. warmup() with all layers makes it one.",
                stacklevel=2,
            )  # fmt: skip
        self._fill(listed, remote, max_retries, _Left())
        count = len(listed)
        return WarmupStats(
            total_prompts=count,
            activations_cached=count - len(states),
            activations_extracted=len(states),
            perplexity_cached=count - len(perplexities),
            perplexity_extracted=len(perplexities),
            elapsed_seconds=time.monotonic() - started,
            logits_cached=count - len(logits) if self.cache_logits else 0,
            logits_extracted=len(logits),
        )

    def get_activations(self, prompts: Sequence[str], remote: bool | None = None) -> tuple[Any, Any]:
        """Pooled vectors (prompts, layers × dim) and None; without `cache_pooled` states (prompts, tokens, layers × dim) and the attention mask,
        padded on the right."""
        extracted = self._cached.extract(prompts, self.remote if remote is None else remote)
        assert extracted is not None
        states, mask = extracted
        return (states.flatten(1), None) if self.cache_pooled else (states, mask)

    def get_perplexity(self, prompts: Sequence[str], remote: bool | None = None) -> Any:
        """A numpy array (prompts, 3): the perplexity of the mean loss of a prompt's tokens, of the smallest and of the largest."""
        import numpy as np

        if not self.compute_perplexity:
            raise ValueError("UnifiedCache was created with compute_perplexity=False. Create a new instance with compute_perplexity=True.")
        listed = cache._prompts_of(prompts)
        missing = [prompt for prompt in listed if not self._has_perplexity(prompt)]
        left = self._fill(missing, remote, None, _Left(keeps_perplexities=True))
        rows = [left.perplexities[prompt] if prompt in left.perplexities else cache.load_prompt_perplexity(self.model_name, prompt) for prompt in listed]
        return np.array([row.numpy() for row in rows], dtype=np.float32).reshape(len(rows), 3)

    def get_logits(self, prompts: Sequence[str], remote: bool | None = None) -> CachedLogits:
        """The logits of the last position, or of all."""
        import torch

        if not self.cache_logits:
            raise ValueError("UnifiedCache was created with cache_logits=False. Create a new instance with cache_logits=True.")
        listed = cache._prompts_of(prompts)
        missing = [prompt for prompt in listed if not self._has_logits(prompt)]
        left = self._fill(missing, remote, None, _Left(keeps_logits=True))
        rows = [left.logits[prompt] if prompt in left.logits else self._stored_logits(prompt) for prompt in listed]

        def together(tensors: list[Any]) -> Any:
            return torch.nn.utils.rnn.pad_sequence([tensor[0] for tensor in tensors], batch_first=True)

        return CachedLogits(
            values=together([values for values, _ in rows]) if rows else torch.zeros((0, 0, 0)),
            indices=together([indices for _, indices in rows]) if rows and self.logit_top_k is not None else None,
            top_k=self.logit_top_k,
            positions=self.logit_positions,
        )

    # ------------------------------------------------------------------------------------------------------------ filling

    def _fill(self, prompts: list[str], remote: bool | None, max_retries: int | None, left: _Left) -> _Left:
        """Computes what is missing. What passes left behind goes to the store, and to `left` what is asked for there."""
        if not prompts:
            return left
        by_pass, remote = _Pass(self, left), self.remote if remote is None else remote
        CachedExtractor(by_pass).extract(prompts, remote, max_retries=max_retries, cache_only=True)
        # Activations were there, and no pass was needed for them.
        lacking = [prompt for prompt in dict.fromkeys(prompts) if prompt not in left.prompts and self._lacks(prompt)]
        for first in range(0, len(lacking), self.batch_size):
            by_pass.extract_batch(lacking[first : first + self.batch_size], [], remote=remote)
        settings.flush(settings.current())
        return left

    def _lacks(self, prompt: str) -> bool:
        return (self.compute_perplexity and not self._has_perplexity(prompt)) or (self.cache_logits and not self._has_logits(prompt))

    def _has_perplexity(self, prompt: str) -> bool:
        return cache._find_record(self.model_name, prompt, "perplexity", ["float32"]) is not None  # Not by the index: it may be damaged.

    def _has_logits(self, prompt: str) -> bool:
        part = "logits" if self.logit_top_k is None else "top_k_logits"
        found = cache._find_record(self.model_name, prompt, part, cache._order())
        if found is None or (self.logit_top_k is not None and found.shape()[-1] < self.logit_top_k):
            return False
        # Those of the last position lie in the same place as those of all.
        return self.logit_positions == "last" or found.shape()[1] == self.extractor.tokenize([prompt])["input_ids"].shape[1]

    def _as_stored(self, values: Any) -> tuple[Any, Any]:
        import torch

        indices = None
        if self.logit_top_k is not None:
            values, indices = values.topk(self.logit_top_k, dim=-1)
            indices = indices.to(torch.int32)
        return values.to(getattr(torch, cache._stored_dtype(values))), indices

    def _stored_logits(self, prompt: str) -> tuple[Any, Any]:
        values, indices = cache.load_prompt_logits(self.model_name, prompt, self.logit_top_k)
        if self.logit_positions == "last":
            values, indices = values[:, -1:], None if indices is None else indices[:, -1:]
        return values, indices

    def _keep(self, prompts: Sequence[str], mask: Any, logits: Any, token_ids: Any, left: _Left | None) -> None:
        for row, prompt in enumerate(prompts):
            if left is not None:
                left.prompts.add(prompt)
            tokens = mask[row].bool()
            if self.compute_perplexity:
                ids = token_ids[row][tokens]
                features, by_token = perplexity_of(logits[row][tokens], ids)
                cache.save_prompt_perplexity(self.model_name, prompt, features, by_token, ids)
                if left is not None and left.keeps_perplexities:
                    left.perplexities[prompt] = features
            if self.cache_logits:
                chosen = logits[row : row + 1]
                cache.save_prompt_logits(self.model_name, prompt, chosen, mask[row : row + 1], self.logit_top_k, self.logit_positions)
                if left is not None and left.keeps_logits:
                    left.logits[prompt] = self._as_stored(cache._positions(chosen, mask[row : row + 1], self.logit_positions))


class _Pass:
    """What CachedExtractor sees: an extractor whose passes leave perplexities and logits behind."""

    def __init__(self, unified: UnifiedCache, left: _Left | None) -> None:
        self.unified = unified
        self.left = left  # None: all that is left behind goes to the store, and nowhere else.

    @property
    def model_name(self) -> Any:
        """The model's identity."""
        return self.unified.extractor.model_name

    @property
    def layer_indices(self) -> list[int]:
        """The chosen layers, ascending."""
        return self.unified.layer_indices

    @property
    def batch_size(self) -> int:
        """How many prompts a pass has."""
        return self.unified.batch_size

    @property
    def pooling(self) -> str | None:
        """None: the states of all tokens."""
        return self.unified.pooling if self.unified.cache_pooled else None

    @property
    def dtype(self) -> Any:
        """The dtype in which activations come."""
        return self.unified.extractor.dtype

    def extract_batch(self, prompts: Sequence[str], layer_indices: Sequence[int], *, remote: bool = False) -> tuple[Any, Any]:
        """As the extractor's own."""
        unified = self.unified
        if not (unified.compute_perplexity or unified.cache_logits):
            return unified.extractor.extract_batch(prompts, layer_indices, remote=remote)
        states, mask, logits, token_ids = unified.extractor.extract_batch_with_logits(prompts, layer_indices, remote=remote)
        unified._keep(prompts, mask, logits, token_ids, self.left)
        return (states, mask) if states is None else pooled_rows(states, mask, self.pooling)


def perplexity_of(logits: Any, token_ids: Any) -> tuple[Any, Any]:
    """Of one prompt, from its logits (tokens, vocabulary): the perplexity of the mean loss, of the smallest and of the largest, (3,), and of each
    token but the first. A prompt of one token has none; its features are 1."""
    import torch

    if len(token_ids) < 2:
        return torch.ones(3), torch.zeros(0)
    losses = torch.nn.functional.cross_entropy(logits[:-1].float(), token_ids[1:].to(logits.device), reduction="none").cpu()
    return torch.stack([losses.mean(), losses.min(), losses.max()]).exp(), losses.exp()
