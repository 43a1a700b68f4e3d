"""Hidden states, pooled vectors, logits and perplexities, each computed once per prompt and layer.

    from lmemo import activations
    from lmemo.activations import ActivationExtractor, CachedExtractor

    activations.set_cache_dtype("float16")
    extractor = CachedExtractor(ActivationExtractor("gpt2", layers="all", batch_size=16))
    states, mask = extractor.extract(prompts)       # (prompts, tokens, layers × dim); only what is missing is computed

`docs/activations.md` is the page for users. torch is loaded when a tensor is made, not on import.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _activation_settings as settings
from . import _core
from ._activation_settings import (
    ModelIdentity,
    enable_cache_logging,
    evict,
    get_backend,
    set_cache_backend,
    set_cache_compression,
    set_cache_dtype,
    set_cache_limit,
)

if TYPE_CHECKING:
    from ._activation_extraction import ActivationExtractor, CachedExtractor, weights_digest
    from ._activation_files import ImportReport, export_safetensors, import_lmprobe, import_safetensors
    from ._activation_unified import CachedLogits, UnifiedCache, WarmupStats

__all__ = [
    "ActivationExtractor",
    "CacheInfo",
    "CachedExtractor",
    "CachedLogits",
    "CachedPromptInfo",
    "ImportReport",
    "ManifestEntry",
    "ModelCacheInfo",
    "ModelIdentity",
    "UnifiedCache",
    "WarmupStats",
    "batch_check_cache_status",
    "cache_info",
    "clear_cache",
    "discover_cached",
    "enable_cache_logging",
    "evict",
    "explain",
    "export_safetensors",
    "get_backend",
    "get_cache_dir",
    "get_prompt_cached_pooled_layers",
    "get_prompt_cached_raw_layers",
    "import_lmprobe",
    "import_safetensors",
    "invalidate_extraction_cache",
    "is_prompt_fully_cached",
    "is_prompt_logits_cached",
    "is_prompt_perplexity_cached",
    "is_prompt_pooled_cached",
    "is_prompt_token_perplexity_cached",
    "list_cached_prompts",
    "load_layer_across_prompts",
    "load_layer_last_token",
    "load_pooled_batch",
    "load_prompt_activations",
    "load_prompt_layer",
    "load_prompt_logits",
    "load_prompt_perplexity",
    "load_prompt_pooled_activations",
    "load_prompt_router_logits",
    "load_prompt_token_perplexity",
    "pool",
    "read_manifest",
    "save_prompt_activations",
    "save_prompt_logits",
    "save_prompt_perplexity",
    "save_prompt_pooled_activations",
    "save_prompt_router_logits",
    "save_prompt_topk_logits",
    "set_cache_backend",
    "set_cache_compression",
    "set_cache_dtype",
    "set_cache_limit",
    "view_prompt_layer",
    "weights_digest",
]

_KIND = "activations"
# Widest first: without a wish, the most exact of what is stored is given.
_WIDEST_FIRST = ("float32", "bfloat16", "float16", "float64")
# By the cache dtype: that one first.
_ORDERS = {wanted: tuple(dict.fromkeys(([wanted] if wanted else []) + list(_WIDEST_FIRST))) for wanted in (None, *_WIDEST_FIRST)}


def __getattr__(name: str) -> Any:
    if name in ("ActivationExtractor", "CachedExtractor", "weights_digest"):
        from . import _activation_extraction

        return getattr(_activation_extraction, name)
    if name in ("ImportReport", "export_safetensors", "import_lmprobe", "import_safetensors"):
        from . import _activation_files

        return getattr(_activation_files, name)
    if name in ("CachedLogits", "UnifiedCache", "WarmupStats"):
        from . import _activation_unified

        return getattr(_activation_unified, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---------------------------------------------------------------------------------------------------------------- saving


_dtype_names: dict[Any, str] = {}


def _name_of_dtype(dtype: Any) -> str:
    if (name := _dtype_names.get(dtype)) is None:
        name = _dtype_names[dtype] = str(dtype).removeprefix("torch.")
    return name


def _on_cpu(tensor: Any) -> Any:
    # detach() and cpu() cost a microsecond each even where there is nothing to do.
    at_hand = tensor if tensor.is_cpu and not tensor.requires_grad else tensor.detach().cpu()
    return at_hand.resolve_neg() if at_hand.is_neg() else at_hand  # Its memory says minus what it is.


def _prepared(tensor: Any) -> Any:
    """On the CPU, in a dtype that the store knows."""
    prepared = _on_cpu(tensor)
    if settings.wanted_dtype is not None and _name_of_dtype(prepared.dtype) == "float64":
        import torch

        prepared = prepared.to(getattr(torch, settings.wanted_dtype))
    return prepared


def _stored_dtype(tensor: Any) -> str:
    return settings.wanted_dtype if settings.wanted_dtype is not None and tensor.is_floating_point() else _name_of_dtype(tensor.dtype)


def _kept_positions(mask: Any) -> tuple[int, int]:
    """From the first to behind the last token that counts: what lies outside is the padding of a batch. Requires: contiguous, on the CPU."""
    return _core.kept_positions(_name_of_dtype(mask.dtype), mask.data_ptr(), mask.numel())


def _save_layers(
    model_name: str, prompt: str, part: str, pooling: str, layers: Sequence[int], tensor: Any, *, wanted: Sequence[int] | None = None,
    mask: Any = None,
) -> bool:  # fmt: skip
    """`tensor` is (rows, layers × dim). Only the wanted layers are stored. With a mask, (rows,), both have all tokens of a batch, and its padding is
    left out; the mask is stored last: a prompt whose states are refused leaves nothing behind."""
    _check_is_prompt(prompt)
    backend = settings.current()
    tensor = _prepared(tensor)
    if tensor.dim() != 2:
        raise ValueError(f"expected one prompt's tokens, each with its layers side by side; got {tuple(tensor.shape)}")
    rows, width = tensor.shape
    if len(layers) == 0 or width % len(layers):
        raise ValueError(f"a tensor of width {width} does not divide into {len(layers)} layers")
    row_elements, between_columns = tensor.stride()
    if between_columns != 1:
        tensor = tensor.contiguous()
        row_elements = width
    dim, row_bytes = width // len(layers), row_elements * tensor.element_size()
    address, its_mask = tensor.data_ptr(), None
    if mask is not None:
        first, end = _kept_positions(mask)
        rows, address = end - first, address + first * row_bytes
        its_mask = (_name_of_dtype(mask.dtype), mask.data_ptr() + first * mask.element_size())
    columns = [column for column, layer in enumerate(layers) if wanted is None or layer in wanted]
    stored = _stored_dtype(tensor)
    size = {"float16": 2, "bfloat16": 2, "float64": 8}.get(stored, 4)
    byte_count = len(columns) * (rows * dim * size + 400) + (0 if mask is None else rows * mask.element_size() + len(prompt) + 400)
    return settings.put_with_room(
        backend,
        byte_count,
        lambda: backend.native.put_rows(
            settings.keys_of(model_name), prompt, part, pooling, [layers[column] for column in columns], columns, stored, settings.is_compressed,
            _name_of_dtype(tensor.dtype), address, rows, dim, row_bytes, its_mask,
        ),
    )  # fmt: skip


def _save_record(model_name: str, prompt: str, part: str, tensors: Sequence[Any], *, stored: str | None) -> bool:
    _check_is_prompt(prompt)
    backend = settings.current()
    prepared = []
    for tensor in tensors:
        tensor = _prepared(tensor).contiguous()
        if stored is not None and tensor.is_floating_point() and _name_of_dtype(tensor.dtype) != stored:
            import torch

            tensor = tensor.to(getattr(torch, stored))
        prepared.append(tensor)
    size = sum(tensor.numel() * tensor.element_size() for tensor in prepared) + 400
    described = [(_name_of_dtype(tensor.dtype), list(tensor.shape), tensor.data_ptr()) for tensor in prepared]
    return settings.put_with_room(
        backend, size, lambda: backend.native.put_tensors(settings.keys_of(model_name), prompt, part, stored, settings.is_compressed, described)
    )


def _one_row(tensor: Any, what: str) -> Any:
    """The tensor without its leading dimension of one prompt."""
    _check_is_tensor(tensor, what)
    if tensor.dim() == 0 or tensor.shape[0] != 1:
        raise ValueError(f"{what}: expected one prompt, (1, …); got {tuple(tensor.shape)}")
    return tensor.select(0, 0)


def _check_is_tensor(tensor: Any, what: str) -> None:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what}: expected a torch tensor, got {type(tensor).__name__}")


def _prompts_of(prompts: Iterable[str]) -> list[str]:
    """A str is a sequence of str too, but hardly ever meant as one."""
    if isinstance(prompts, str):
        raise TypeError("prompts: expected a list of str, got one str")
    listed = list(prompts)
    for prompt in listed:
        _check_is_prompt(prompt)
    return listed


def _check_is_prompt(prompt: Any) -> None:
    if not isinstance(prompt, str):
        raise TypeError(f"prompt: expected str, got {type(prompt).__name__}")


def _mask_of(attention_mask: Any) -> Any:
    """The mask of one prompt, from (1, tokens) or (tokens,)."""
    _check_is_tensor(attention_mask, "attention_mask")
    mask = attention_mask if attention_mask.dim() == 1 else _one_row(attention_mask, "attention_mask")
    if mask.dim() != 1:
        raise ValueError(f"attention_mask: expected (1, tokens), got {tuple(attention_mask.shape)}")
    return _on_cpu(mask).contiguous()


def save_prompt_activations(model_name: str, prompt: str, layers: Sequence[int], activations: Any, attention_mask: Any) -> None:
    """Raw states of one prompt, (1, tokens, layers × dim), with its attention mask, (1, tokens). Padding is left out."""
    if settings.is_off():
        return
    states, mask = _one_row(activations, "activations"), _mask_of(attention_mask)
    if states.shape[0] != mask.shape[0]:
        raise ValueError(f"activations have {states.shape[0]} tokens, attention_mask has {mask.shape[0]}")
    _save_layers(model_name, prompt, "raw", "", layers, states, mask=mask)


def save_prompt_pooled_activations(model_name: str, prompt: str, layers: Sequence[int], pooled_activations: Any, pooling: str) -> None:
    """Pooled vectors of one prompt, (1, layers × dim)."""
    _check_is_tensor(pooled_activations, "pooled_activations")
    if pooled_activations.dim() > 1:
        pooled_activations = _one_row(pooled_activations, "pooled_activations")
    if not settings.is_off():
        _save_layers(model_name, prompt, "pooled", pooling, layers, pooled_activations.reshape(1, -1))


def save_prompt_router_logits(model_name: str, prompt: str, router_logits: Mapping[int, Any]) -> None:
    """Router logits of a mixture of experts: for each layer (tokens, experts)."""
    if not isinstance(router_logits, Mapping):
        raise TypeError(f"router_logits: expected a dict of tensors by layer, got {type(router_logits).__name__}")
    for layer, tensor in router_logits.items():
        _check_is_tensor(tensor, f"router_logits of layer {layer}")
    if settings.is_off():
        return
    for layer, tensor in router_logits.items():
        _save_layers(model_name, prompt, "router", "", [layer], tensor)


def _positions(tensor: Any, attention_mask: Any, positions: str, what: str = "logits") -> Any:
    """The last token's part of (1, tokens, …), or that of all that count."""
    if positions not in ("last", "all"):
        raise ValueError(f"Invalid positions: {positions!r}. Must be 'last' or 'all'.")
    rows, mask = _one_row(tensor, what), _mask_of(attention_mask)
    if rows.dim() != 2 or rows.shape[0] != mask.shape[0]:
        raise ValueError(f"{what}: expected (1, {mask.shape[0]}, …), as attention_mask has so many tokens; got {tuple(tensor.shape)}")
    first, end = _kept_positions(mask)
    return tensor[:, max(first, end - 1) : end] if positions == "last" else tensor[:, first:end]


def _check_top_k(top_k: int | None) -> None:
    if top_k is not None and (not hasattr(top_k, "__index__") or isinstance(top_k, bool)):
        raise TypeError(f"top_k: expected None or an int, got {type(top_k).__name__}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: expected at least 1, got {top_k}")


def save_prompt_logits(
    model_name: str, prompt: str, logits: Any, attention_mask: Any, top_k: int | None = None, positions: str = "last"
) -> None:
    """Logits of one prompt, (1, tokens, vocabulary): of the last token or of all, in full or the `top_k` largest."""
    _check_top_k(top_k)
    chosen = _positions(logits, attention_mask, positions)
    if top_k is not None and top_k > chosen.shape[-1]:
        raise ValueError(f"top_k: expected at most the {chosen.shape[-1]} of the vocabulary, got {top_k}")
    if settings.is_off():
        return
    if top_k is None:
        _save_record(model_name, prompt, "logits", [chosen], stored=_stored_dtype(chosen))
        return
    values, indices = chosen.topk(top_k, dim=-1)
    _save_top_k(model_name, prompt, values, indices)


def save_prompt_topk_logits(
    model_name: str, prompt: str, values: Any, indices: Any, attention_mask: Any, positions: str = "last"
) -> None:
    """Logits that were cut to the largest elsewhere: values and indices, (1, tokens, k)."""
    values, indices = _positions(values, attention_mask, positions, "values"), _positions(indices, attention_mask, positions, "indices")
    if values.shape != indices.shape:
        raise ValueError(f"values and indices differ in shape: {tuple(values.shape)} and {tuple(indices.shape)}")
    if indices.is_floating_point():
        raise TypeError(f"indices: expected token ids, got {indices.dtype}")
    if not settings.is_off():
        _save_top_k(model_name, prompt, values, indices)


def _save_top_k(model_name: str, prompt: str, values: Any, indices: Any) -> None:
    import torch

    _save_record(model_name, prompt, "top_k_logits", [values, indices.to(torch.int32)], stored=_stored_dtype(values))


def save_prompt_perplexity(
    model_name: str, prompt: str, perplexity_features: Any, token_perplexity: Any = None, token_ids: Any = None
) -> None:
    """Perplexity features of one prompt, (3,), and if given the perplexity of each token and the token ids."""
    import torch

    _check_is_tensor(perplexity_features, "perplexity_features")
    for what, tensor in (("token_perplexity", token_perplexity), ("token_ids", token_ids)):
        if tensor is not None:
            _check_is_tensor(tensor, what)
    if settings.is_off():
        return
    # A handful of numbers: exact, whatever the cache dtype.
    _save_record(model_name, prompt, "perplexity", [perplexity_features.float()], stored="float32")
    if token_perplexity is not None:
        ids = token_ids.long() if token_ids is not None else torch.empty(0, dtype=torch.int64)
        _save_record(model_name, prompt, "token_perplexity", [token_perplexity.float(), ids], stored="float32")


# --------------------------------------------------------------------------------------------------------------- loading


def _order() -> tuple[str, ...]:
    return _ORDERS[settings.wanted_dtype]


@functools.lru_cache(maxsize=1024)
def _wanted_layers(part: str, pooling: str, layers: tuple[int, ...], order: tuple[str, ...], dtype: str | None) -> _core.WantedLayers:
    """Kept: whoever loads prompt by prompt asks for the same of each."""
    return _core.WantedLayers(part, pooling, layers, order, dtype)


def _only_keys_of(model_name: str) -> _core.ActivationKeys | None:
    """For a plain name under which nothing is stored: the keys of the one identity of that name. Several are an error, never a guess."""
    if isinstance(model_name, ModelIdentity):
        return None
    backend = settings.current()
    encoding = settings.keys_of(model_name).encoding
    same_name = [model for model in backend.native.models() if model["name"] == str.__str__(model_name)]
    if len(same_name) == 0 or any(model["encoding"] == encoding for model in same_name):
        return None
    if len(same_name) > 1:
        described = "; ".join(str({name: value for name, value in model["fields"].items() if name != "model"}) for model in same_name)
        raise LookupError(f"{len(same_name)} models called {model_name!r} are stored: {described}. Ask with a ModelIdentity")
    keys: _core.ActivationKeys = same_name[0]["keys"]
    return keys


def _by_name(model_name: str, find: Callable[[_core.ActivationKeys], Any]) -> Any:
    """What is found under this name, or under the only identity of that name; None if nothing is."""
    found = find(settings.keys_of(model_name))
    if found is None and (keys := _only_keys_of(model_name)) is not None:
        found = find(keys)
    return found


def _find_layers(model_name: str, prompt: str, part: str, pooling: str, layers: Sequence[int]) -> Any:
    if len(layers) == 0:
        raise ValueError("layers: expected at least one")
    if settings.is_off():
        return None
    native = settings.current().native
    return _by_name(model_name, lambda keys: native.find_layers(keys, prompt, part, pooling, list(layers), _order()))


def _find_record(model_name: str, prompt: str, part: str, order: Sequence[str]) -> Any:
    if settings.is_off():
        return None
    native = settings.current().native
    return _by_name(model_name, lambda keys: native.find_record(keys, prompt, part, order))


def _tensor_of(found: Any, number: int = 0) -> Any:
    import torch

    tensor = torch.empty(found.shape(number), dtype=getattr(torch, found.dtype(number)))
    found.copy_to(number, tensor.data_ptr(), found.dtype(number))
    return tensor


def _missing(what: str, model_name: str, prompt: str) -> FileNotFoundError:
    return FileNotFoundError(f"No cached {what} of {str.__str__(model_name)!r} found for prompt: {prompt!r}")


def load_prompt_layer(model_name: str, prompt: str, layer: int) -> Any:
    """Raw states of one layer of one prompt: a tensor (1, tokens, dim) in the dtype in which it is stored, yours to write to.

    It mostly lies in the store's mapped file, and costs microseconds whatever its size. What you write to it never reaches the file, nor anybody
    else's tensor: the pages become your process's own, and are given back with the tensor. clone() takes it out of the store's memory.
    """
    if (found := settings.load_layer(model_name, prompt, layer)) is not None:
        return found
    if not settings.is_off() and (keys := _only_keys_of(model_name)) is not None:
        found = settings.current().with_torch().load_layer_of(keys, prompt, layer)
        if found is not None:
            return found
    raise _missing(f"layer {layer}", model_name, prompt)


def view_prompt_layer(model_name: str, prompt: str, layer: int) -> Any:
    """The same as a numpy array (tokens, dim) over the store's own memory: no copy, and read-only.

    bfloat16, which numpy lacks, comes as uint16 bits; compressed states are decompressed first.
    """
    import numpy

    found = _find_layers(model_name, prompt, "raw", "", [layer])
    if found is None:
        raise _missing(f"layer {layer}", model_name, prompt)
    dtype = "uint16" if found.dtype() == "bfloat16" else found.dtype()
    if found.is_compressed():
        array = numpy.empty(found.shape(), dtype)
        found.copy_to(0, array.ctypes.data, found.dtype())
        array.flags.writeable = False
        return array
    rows, dim = found.shape()
    return numpy.frombuffer(found.hit(), dtype, rows * dim, found.offset()).reshape(rows, dim)


def load_prompt_activations(model_name: str, prompt: str, layers: Sequence[int]) -> tuple[Any, Any]:
    """Raw states of some layers of one prompt side by side, (1, tokens, layers × dim), and the attention mask, (1, tokens)."""
    if len(layers) == 0:
        raise ValueError("layers: expected at least one")
    found = None
    if not settings.is_off():
        native = settings.current().with_torch()
        wanted = _wanted_layers("raw", "", tuple(map(operator.index, layers)), _order(), None)
        found = _by_name(model_name, lambda keys: native.load_all(keys, [prompt], wanted))
    if found is None:
        raise _missing(f"activations of layers {list(layers)}", model_name, prompt)
    states, mask = found
    return states, mask


def load_layer_across_prompts(model_name: str, prompts: Sequence[str], layer: int) -> tuple[list[Any], list[Any]]:
    """One layer of many prompts: a list of (1, tokens, dim) and a list of masks, (1, tokens)."""
    both = [load_prompt_activations(model_name, prompt, [layer]) for prompt in _prompts_of(prompts)]
    return [states for states, _ in both], [mask for _, mask in both]


def load_layer_last_token(model_name: str, prompts: Sequence[str], layer: int) -> Any:
    """The last token's state in one layer of many prompts, as one tensor (prompts, dim)."""
    listed = _prompts_of(prompts)
    if not settings.is_off():
        rows = settings.current().with_torch().load_last_rows(settings.keys_of(model_name), listed, layer, _order())
        if rows is not None:
            return rows
    # One by one, to say which of them is missing.
    return _stacked([_last_row(model_name, prompt, layer) for prompt in listed])


def _last_row(model_name: str, prompt: str, layer: int) -> Any:
    found = _find_layers(model_name, prompt, "raw", "", [layer])
    if found is None or found.shape()[0] == 0:
        raise _missing(f"layer {layer}", model_name, prompt)
    return _tensor_of(found)[-1:]


def _stacked(rows: list[Any]) -> Any:
    """One tensor of all rows. Two stored dtypes are not mixed: one of them would come back as what it is not."""
    import torch

    if not rows:
        raise ValueError("prompts: expected at least one")
    dtypes = {row.dtype for row in rows}
    if len(dtypes) > 1:
        raise ValueError(f"the prompts are stored in different dtypes: {sorted(map(str, dtypes))}; set_cache_dtype() chooses one where both exist")
    return torch.cat(rows, dim=0)


def load_prompt_pooled_activations(model_name: str, prompt: str, layers: Sequence[int], pooling: str) -> Any:
    """Pooled vectors of some layers of one prompt, (1, layers × dim)."""
    found = _find_layers(model_name, prompt, "pooled", pooling, layers)
    if found is None:
        raise _missing(f"pooled activations ({pooling}) of layers {list(layers)}", model_name, prompt)
    return settings.current().with_torch().side_by_side(found)[0]


def load_pooled_batch(
    model_name: str, prompts: Sequence[str], layers: Sequence[int], pooling: str = "last_token", *, fallback_to_raw: bool = False,
    show_progress: bool = False,
) -> Any:  # fmt: skip
    """Pooled vectors of many prompts, (prompts, layers × dim). With fallback_to_raw, raw states are pooled where no pooled ones are stored."""
    rows, missing = [], []
    shown: Iterable[str] = _prompts_of(prompts)
    if show_progress:
        from tqdm import tqdm

        shown = tqdm(prompts, desc="Loading activations")
    for prompt in shown:
        found = _find_layers(model_name, prompt, "pooled", pooling, layers)
        if found is not None:
            rows.append(settings.current().with_torch().side_by_side(found)[0])
            continue
        if fallback_to_raw:
            try:
                rows.append(pool(*load_prompt_activations(model_name, prompt, layers), pooling))
                continue
            except FileNotFoundError:
                pass
        missing.append(prompt)
    if missing:
        more = f" … and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise FileNotFoundError(f"No cached {'' if fallback_to_raw else 'pooled '}activations for {len(missing)} prompt(s): {missing[:3]!r}{more}")
    return _stacked(rows)


def load_prompt_router_logits(model_name: str, prompt: str, layers: Sequence[int]) -> dict[int, Any]:
    """Router logits by layer, (tokens, experts) each. KeyError if one is not there."""
    result = {}
    for layer in layers:
        found = _find_layers(model_name, prompt, "router", "", [layer])
        if found is None:
            raise KeyError(f"Router logits for layer {layer} (router_layer_{layer}) not found in cache for model={str.__str__(model_name)!r}, prompt={prompt[:50]!r}")
        result[layer] = _tensor_of(found)
    return result


def load_prompt_logits(model_name: str, prompt: str, top_k: int | None = None) -> tuple[Any, Any]:
    """(logits, None), or with top_k (values, indices): the k largest, where at least so many are stored."""
    _check_top_k(top_k)
    found = _find_record(model_name, prompt, "logits" if top_k is None else "top_k_logits", _order())
    if found is None or (top_k is not None and (len(found) != 2 or found.shape()[-1] < top_k)):
        raise _missing("logits" if top_k is None else f"top {top_k} logits", model_name, prompt)
    if top_k is None:
        return _tensor_of(found), None
    return _tensor_of(found)[..., :top_k], _tensor_of(found, 1)[..., :top_k]


def load_prompt_perplexity(model_name: str, prompt: str) -> Any:
    """The perplexity features, (3,)."""
    found = _find_record(model_name, prompt, "perplexity", ["float32"])
    if found is None:
        raise _missing("perplexity", model_name, prompt)
    return _tensor_of(found)


def load_prompt_token_perplexity(model_name: str, prompt: str) -> tuple[Any, Any]:
    """The perplexity of each token, and the token ids."""
    found = _find_record(model_name, prompt, "token_perplexity", ["float32"])
    if found is None:
        raise _missing("token perplexity", model_name, prompt)
    return _tensor_of(found), _tensor_of(found, 1)


def pool(activations: Any, attention_mask: Any, pooling: str) -> Any:
    """(batch, tokens, dim) and (batch, tokens) to (batch, dim): last_token, first_token, mean or max over the tokens that count (all if None)."""
    import torch

    if attention_mask is None:
        attention_mask = torch.ones(activations.shape[:2])
    mask = attention_mask.to(activations.device).bool()
    rows = torch.arange(mask.shape[0], device=mask.device)
    if pooling == "first_token":
        return activations[rows, mask.int().argmax(dim=1)]
    if pooling == "last_token":
        return activations[rows, mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1)]
    wide = mask.unsqueeze(-1)
    if pooling == "mean":
        return (activations * wide).sum(dim=1) / wide.sum(dim=1).clamp(min=1).to(activations.dtype)
    if pooling == "max":
        return activations.masked_fill(~wide, float("-inf")).amax(dim=1)
    raise ValueError(f"Unknown pooling: {pooling!r}. Use 'last_token', 'first_token', 'mean' or 'max'")


def _hash_number(*parts: str) -> int:
    """63 bits for a claim: two that collide wait for one another, and nothing worse."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little") >> 1


from ._activation_info import (  # noqa: E402  (it needs what stands above)
    CachedPromptInfo,
    CacheInfo,
    ManifestEntry,
    ModelCacheInfo,
    batch_check_cache_status,
    cache_info,
    clear_cache,
    discover_cached,
    explain,
    get_cache_dir,
    get_prompt_cached_pooled_layers,
    get_prompt_cached_raw_layers,
    invalidate_extraction_cache,
    is_prompt_fully_cached,
    is_prompt_logits_cached,
    is_prompt_perplexity_cached,
    is_prompt_pooled_cached,
    is_prompt_token_perplexity_cached,
    list_cached_prompts,
    read_manifest,
)
