"""What is stored, and removing it: the part of lmemo.activations that looks at the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core
from . import activations as cache


@dataclass
class CachedPromptInfo:
    """What is stored of one prompt. `dtypes` says in which dtypes its layers and logits are stored."""

    raw_layers: list[int]
    pooled: dict[str, list[int]]
    has_logits: bool
    logits_top_k: int | None
    has_perplexity: bool
    has_token_perplexity: bool
    num_tokens: int | None
    router_layers: list[int] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)


@dataclass
class ModelCacheInfo:
    """What is stored of one model."""

    model_name: str | None
    model_hash: str
    size_bytes: int
    num_prompts: int
    num_layers: int
    has_pooled: bool
    has_perplexity: bool
    has_logits: bool = False
    identity: dict[str, str] = field(default_factory=dict)  # All fields that tell it from other models.

    @property
    def size_gb(self) -> float:
        """The size in GiB."""
        return self.size_bytes / cache._GIB


@dataclass
class CacheInfo:
    """What is stored. Times are seconds since 1970."""

    cache_dir: Path | str
    total_size_bytes: int
    models: list[ModelCacheInfo] = field(default_factory=list)
    oldest_mtime: float | None = None
    newest_mtime: float | None = None
    cache_limit_bytes: int | None = None

    @property
    def total_size_gb(self) -> float:
        """The size of everything in GiB."""
        return self.total_size_bytes / cache._GIB


def cache_info(model: str | None = None) -> CacheInfo:
    """What is stored, of all models or of those with this name, from the index alone."""
    backend = cache._current()
    models, oldest, newest = [], [], []
    for found in backend.native.models():
        if model is not None and not _is_called(found, model) or found["entries"] == 0:
            continue
        models.append(
            ModelCacheInfo(
                model_name=found["name"] or None, model_hash=found["hash"], size_bytes=found["stored_bytes"], num_prompts=found["prompts"],
                num_layers=len(found["layers"]), has_pooled=found["has_pooled"], has_perplexity=found["has_perplexity"],
                has_logits=found["has_logits"], identity=found["fields"],
            )
        )  # fmt: skip
        oldest.append(found["oldest_ns"] / 1e9)
        newest.append(found["newest_ns"] / 1e9)
    return CacheInfo(
        cache_dir=backend.where,
        total_size_bytes=sum(found.size_bytes for found in models),
        models=sorted(models, key=lambda found: -found.size_bytes),
        oldest_mtime=min(oldest, default=None),
        newest_mtime=max(newest, default=None),
        cache_limit_bytes=cache._limit_bytes or None,
    )


def _is_called(found: dict[str, Any], model: str) -> bool:
    if isinstance(model, cache.ModelIdentity):
        return bool(found["encoding"] == cache._current().keys_of(model).encoding)
    return bool(found["name"] == model)


def discover_cached(model_name: str, prompt: str) -> CachedPromptInfo | None:
    """What is stored of one prompt, without loading it; None if nothing is."""
    backend = cache._current()
    keys = backend.keys_of(model_name)
    found = backend.native.discover(keys, prompt)
    if found is None and not isinstance(model_name, cache.ModelIdentity):
        resolved = cache._resolved(model_name)
        if resolved is not model_name:
            keys = backend.keys_of(resolved)
            found = backend.native.discover(keys, prompt)
    if found is None:
        return None
    raw, pooled, router, logits, top_k_logits, perplexity, token_perplexity, has_mask = found
    num_tokens = top_k = None
    if has_mask:
        mask = backend.native.find_record(keys, prompt, "mask", [])
        num_tokens = None if mask is None else mask.shape()[0]
    if top_k_logits:
        values = backend.native.find_record(keys, prompt, "top_k_logits", top_k_logits)
        top_k = None if values is None else values.shape()[-1]
    stored = {dtype for _, dtype in raw} | {dtype for layers in pooled.values() for _, dtype in layers} | {*logits, *top_k_logits}
    return CachedPromptInfo(
        raw_layers=_distinct(raw),
        pooled={pooling: _distinct(layers) for pooling, layers in pooled.items()},
        has_logits=bool(logits),
        logits_top_k=top_k,
        has_perplexity=bool(perplexity),
        has_token_perplexity=bool(token_perplexity),
        num_tokens=num_tokens,
        router_layers=_distinct(router),
        dtypes=sorted(stored),
    )


def _distinct(layers: Iterable[tuple[int, str]]) -> list[int]:
    return list(dict.fromkeys(layer for layer, _ in layers))  # They come sorted.


def explain(model_name: str, prompt: str, layer: int, *, pooling: str | None = None) -> str:
    """Why one layer of one prompt is not there, or that it is: names the field in which the nearest entry differs."""
    backend = cache._current()
    keys = backend.keys_of(model_name)
    part = "raw" if pooling is None else "pooled"
    nearest: Any = None
    for dtype in cache._order():
        explanation = backend.store.explain(keys.key(prompt, part, layer, pooling or "", dtype))
        if explanation.is_hit:
            return str(explanation)
        if nearest is None or len(explanation.differing) < len(nearest.differing):
            nearest = explanation
    return str(nearest)


def clear_cache() -> int:
    """Removes all activations from the store, and nothing else. Returns how many entries there were."""
    backend = cache._current()
    backend.used = None
    return int(backend.store.clear(cache._KIND).entries)


def invalidate_extraction_cache(
    model_name: str, prompts: Sequence[str] | None = None, layers: Sequence[int] | None = None
) -> int:
    """Removes what is stored of a model: all of it, or of some prompts, or some layers. Returns how many entries there were.

    A plain name stands for every identity of that name.
    """
    backend = cache._current()
    backend.used = None
    removed = 0
    for found in backend.native.models():
        if not _is_called(found, model_name):
            continue
        wanted_prompts: list[str | None] = [None] if prompts is None else list(dict.fromkeys(prompts))
        wanted_layers: list[int | None] = [None] if layers is None else list(dict.fromkeys(layers))
        removed += _erase(backend, found, wanted_prompts, wanted_layers)
    return removed


def _erase(backend: cache._Backend, found: dict[str, Any], prompts: list[str | None], layers: list[int | None]) -> int:
    encoding, count = found["encoding"], 0
    for prompt in prompts:
        for layer in layers:
            wanted: dict[str, Any] = {"model": found["name"]}
            if prompt is not None:
                wanted["prompt"] = prompt
            if layer is not None:
                wanted["layer"] = layer
            for entry in backend.store.scan(cache._KIND, wanted):
                if entry.key is not None and _model_encoding(entry.key) == encoding and backend.store.erase(entry.key):
                    count += 1
    backend.store.flush()
    return count


_SLOT_FIELDS = {"layer", "part", "pooling", "prompt", "stored"}


def _model_encoding(key: Any) -> bytes:
    return _core.ActivationKeys({name: value for name, value in key.fields.items() if name not in _SLOT_FIELDS}).encoding
