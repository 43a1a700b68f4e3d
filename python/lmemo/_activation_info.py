"""What is stored, and removing it: the part of lmemo.activations that looks at the index."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core
from . import _activation_settings as settings
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
class ManifestEntry:
    """A prompt with raw states: the first digits of its SHA-256, its tokens, and when it was stored (ISO 8601)."""

    hash: str
    prompt: str
    num_tokens: int | None
    cached_at: str


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
        return self.size_bytes / settings.GIB

    def __repr__(self) -> str:
        kinds = {"pooled": self.has_pooled, "logits": self.has_logits, "perplexity": self.has_perplexity}
        what = ", ".join([f"{self.num_prompts} prompts", f"{self.num_layers} layers", *(kind for kind, is_there in kinds.items() if is_there)])
        return f"{self.model_name or f'(hash: {self.model_hash})'}: {_readable(self.size_bytes)} ({what})"


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
        return self.total_size_bytes / settings.GIB

    def __repr__(self) -> str:
        lines = [f"Cache directory: {self.cache_dir}", f"Total size: {_readable(self.total_size_bytes)}"]
        if self.cache_limit_bytes:
            lines.append(f"Size limit: {_readable(self.cache_limit_bytes)}")
        if self.models:
            lines += ["Models:", *(f"  {model!r}" for model in self.models)]
        for what, mtime in (("Oldest", self.oldest_mtime), ("Newest", self.newest_mtime)):
            if mtime is not None:
                lines.append(f"{what} entry: {time.strftime('%Y-%m-%d %H:%M', time.localtime(mtime))}")
        return "\n".join(lines)


def _readable(byte_count: int) -> str:
    size, units = float(byte_count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def cache_info(model: str | None = None) -> CacheInfo:
    """What is stored, of all models or of those with this name, from the index alone."""
    if model is not None and not isinstance(model, str):
        raise TypeError(f"model: expected str or None, got {type(model).__name__}")
    backend = settings.current()
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
        cache_limit_bytes=settings.limit_bytes or None,
    )


def _is_called(found: dict[str, Any], model: str) -> bool:
    if isinstance(model, settings.ModelIdentity):
        return bool(found["encoding"] == settings.keys_of(model).encoding)
    return bool(found["name"] == model)


def discover_cached(model_name: str, prompt: str) -> CachedPromptInfo | None:
    """What is stored of one prompt, without loading it; None if nothing is, or if caching is off."""
    found = _discovered(model_name, prompt)
    if found is None:
        return None
    raw, pooled, router, logits, top_k_logits, perplexity, token_perplexity, num_tokens, top_k = found
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


def _discovered(model_name: str, prompt: str) -> Any:
    if settings.is_off():
        return None  # Nothing would be loaded.
    native = settings.current().native
    return cache._by_name(model_name, lambda keys: native.discover(keys, prompt))


def _distinct(layers: Iterable[tuple[int, str]]) -> list[int]:
    return list(dict.fromkeys(layer for layer, _ in layers))  # They come sorted.


def list_cached_prompts(model_name: str, verify: bool = False) -> list[ManifestEntry]:
    """The prompts with raw states under this name (of any identity, or of one ModelIdentity), in the order in which they were stored.

    They are read from the entries themselves, so none is stale, and `verify` changes nothing.
    """
    backend = settings.current()
    wanted = settings.keys_of(model_name).encoding if isinstance(model_name, settings.ModelIdentity) else None
    listed: dict[str, ManifestEntry] = {}
    entries = backend.store.scan(cache._KIND, {"model": str.__str__(model_name), "part": "mask"})
    for entry in sorted(entries, key=lambda entry: entry.written):
        if entry.key is None or (wanted is not None and _model_encoding(entry.key) != wanted):
            continue
        found = backend.native.find_key(entry.key)
        prompt = entry.key.fields["prompt"]
        if found is not None and not isinstance(prompt, str) and len(found) > 1:
            prompt = bytes(cache._tensor_of(found, 1).tolist()).decode("utf-8", "surrogatepass")
        if found is None or not isinstance(prompt, str):
            continue
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        listed[prompt] = ManifestEntry(digest[:16], prompt, int(cache._tensor_of(found).count_nonzero()), entry.written.isoformat())
    return list(listed.values())


def read_manifest(model_name: str) -> list[ManifestEntry]:
    """The same: there is no manifest apart from the entries."""
    return list_cached_prompts(model_name)


def batch_check_cache_status(
    model_name: str, prompts: Sequence[str], required_layers: Iterable[int], pooling: str | None = None, compute_perplexity: bool = False,
    cache_logits: bool = False, logit_top_k: int | None = None, verify_cache: bool = True,
) -> tuple[list[str], list[str], list[str], int, set[int] | None]:  # fmt: skip
    """What an extraction has to compute: the prompts that lack activations, perplexity and logits; how many have some of the layers; and which, of one.

    By the index alone, hence always by layers: `verify_cache` changes nothing.
    """
    required, prompts = set(required_layers), cache._prompts_of(prompts)
    need_activations, partly = [], []
    for prompt in prompts:
        if not _has_layers(model_name, prompt, required, pooling):
            need_activations.append(prompt)
            if layers := _layers_of(discover_cached(model_name, prompt), pooling):
                partly.append(layers)
    need_perplexity = [prompt for prompt in prompts if not is_prompt_perplexity_cached(model_name, prompt)] if compute_perplexity else []
    need_logits = [prompt for prompt in prompts if not is_prompt_logits_cached(model_name, prompt, logit_top_k)] if cache_logits else []
    return need_activations, need_perplexity, need_logits, len(partly), partly[0] if partly else None


def get_cache_dir() -> Path:
    """The directory of the store in use."""
    return Path(settings.current().where)


def _layers_of(info: CachedPromptInfo | None, pooling: str | None) -> set[int]:
    if info is None:
        return set()
    return set(info.raw_layers if pooling is None else info.pooled.get(pooling, []))


def _has_layers(model_name: str, prompt: str, required: Iterable[int], pooling: str | None = None) -> bool:
    """Whether these layers can be loaded together: all are there in one dtype, and of raw states the mask, which eviction may have taken."""
    found = _discovered(model_name, prompt)
    if found is None:
        return False
    raw, poolings, num_tokens = found[0], found[1], found[7]
    if pooling is None and num_tokens is None:
        return False
    wanted = set(required)
    by_dtype: dict[str, set[int]] = {}
    for layer, dtype in raw if pooling is None else poolings.get(pooling, []):
        by_dtype.setdefault(dtype, set()).add(layer)
    return any(wanted <= layers for layers in by_dtype.values())


def get_prompt_cached_raw_layers(model_name: str, prompt: str) -> set[int] | None:
    """Which layers have raw states; None if nothing is stored of this prompt."""
    info = discover_cached(model_name, prompt)
    return None if info is None else _layers_of(info, None)


def get_prompt_cached_pooled_layers(model_name: str, prompt: str, pooling: str) -> set[int] | None:
    """Which layers have vectors of this pooling; None if nothing is stored of this prompt."""
    info = discover_cached(model_name, prompt)
    return None if info is None else _layers_of(info, pooling)


def is_prompt_fully_cached(model_name: str, prompt: str, required_layers: Iterable[int]) -> bool:
    """Whether raw states of all these layers are there and load together, by the index."""
    return _has_layers(model_name, prompt, required_layers)


def is_prompt_pooled_cached(model_name: str, prompt: str, required_layers: Iterable[int], pooling: str) -> bool:
    """Whether pooled vectors of all these layers are there and load together, by the index."""
    return _has_layers(model_name, prompt, required_layers, pooling)


def is_prompt_logits_cached(model_name: str, prompt: str, top_k: int | None = None) -> bool:
    """Whether full logits are there, or at least the top_k largest."""
    cache._check_top_k(top_k)
    info = discover_cached(model_name, prompt)
    if info is None:
        return False
    return info.has_logits if top_k is None else info.logits_top_k is not None and info.logits_top_k >= top_k


def is_prompt_perplexity_cached(model_name: str, prompt: str) -> bool:
    """Whether perplexity features are there."""
    info = discover_cached(model_name, prompt)
    return info is not None and info.has_perplexity


def is_prompt_token_perplexity_cached(model_name: str, prompt: str) -> bool:
    """Whether the perplexity of each token is there."""
    info = discover_cached(model_name, prompt)
    return info is not None and info.has_token_perplexity


def explain(model_name: str, prompt: str, layer: int, *, pooling: str | None = None) -> str:
    """Why one layer of one prompt is not there, or that it is: names the field in which the nearest entry differs."""
    backend = settings.current()
    keys = settings.keys_of(model_name)
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
    backend = settings.current()
    backend.used = None
    return int(backend.store.clear(cache._KIND).entries)


def invalidate_extraction_cache(
    model_name: Any, prompts: Sequence[str] | None = None, layers: Sequence[int] | None = None
) -> int:
    """Removes what is stored of a model: all of it, or of some prompts, or some layers. Returns how many entries there were.

    A plain name stands for every identity of that name. An extractor stands for its model and layers: what it extracted goes.
    A prompt whose last raw layer goes loses its attention mask too.
    """
    if hasattr(model_name, "extractor"):
        model_name = model_name.extractor
    if not isinstance(model_name, str):
        if not hasattr(model_name, "layer_indices"):
            raise TypeError(f"model_name: expected str or an extractor, got {type(model_name).__name__}")
        model_name, layers = model_name.model_name, model_name.layer_indices if layers is None else layers
    backend = settings.current()
    backend.used = None
    wanted = None if layers is None else set(layers)
    doomed: list[Any] = []
    for model in backend.native.models():
        if not _is_called(model, model_name):
            continue
        if prompts is None:
            doomed += _doomed(_entries_of_model(backend, model), wanted)
        else:
            for prompt in dict.fromkeys(cache._prompts_of(prompts)):
                doomed += _doomed(_entries_of_prompt(backend, model["keys"], prompt), wanted)
    removed = sum(bool(backend.store.erase(key)) for key in doomed)
    backend.store.flush()
    return removed


# Of an entry: whose prompt, which part, which layer, and its key.
_Stored = tuple[Any, Any, Any, Any]


def _doomed(entries: Iterable[_Stored], layers: set[int] | None) -> list[Any]:
    """The keys of the entries with these layers (None: of all), and of masks that nothing needs any more."""
    doomed, masks, still_needed, was_needed = [], [], set(), set()
    for prompt, part, layer, key in entries:
        if layers is None or layer in layers:
            doomed.append(key)
            was_needed.add(prompt)
        elif part == "raw":
            still_needed.add(prompt)
        elif part == "mask":
            masks.append((prompt, key))
    return doomed + [key for prompt, key in masks if prompt in was_needed and prompt not in still_needed]


def _entries_of_model(backend: settings.Backend, model: dict[str, Any]) -> Iterator[_Stored]:
    for entry in backend.store.scan(cache._KIND, {"model": model["name"]}):
        if entry.key is not None and _model_encoding(entry.key) == model["encoding"]:
            fields = entry.key.fields
            yield fields["prompt"], fields["part"], fields.get("layer"), entry.key


def _entries_of_prompt(backend: settings.Backend, keys: _core.ActivationKeys, prompt: str) -> Iterator[_Stored]:
    found = backend.native.discover(keys, prompt)
    if found is None:
        return
    raw, pooled, router, logits, top_k_logits, perplexity, token_perplexity = found[:7]
    slots: list[tuple[str, int | None, str, str | None]] = [("mask", None, "", None)]
    slots += [("raw", layer, "", dtype) for layer, dtype in raw] + [("router", layer, "", dtype) for layer, dtype in router]
    slots += [("pooled", layer, pooling, dtype) for pooling, layers in pooled.items() for layer, dtype in layers]
    for part, dtypes in (("logits", logits), ("top_k_logits", top_k_logits), ("perplexity", perplexity), ("token_perplexity", token_perplexity)):
        slots += [(part, None, "", dtype) for dtype in dtypes]
    for part, layer, pooling, dtype in slots:
        yield prompt, part, layer, keys.key(prompt, part, layer, pooling, dtype)


_SLOT_FIELDS = {"layer", "part", "pooling", "prompt", "stored"}


def _model_encoding(key: Any) -> bytes:
    return _core.ActivationKeys({name: value for name, value in key.fields.items() if name not in _SLOT_FIELDS}).encoding
