"""Extraction for lmemo.activations: hooks on transformers models, and the wrapper that computes only what is missing."""

from __future__ import annotations

import hashlib
import json
import logging
import operator
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import _core
from . import _activation_settings as settings
from . import activations as cache
from ._errors import Error
from ._activation_settings import ModelIdentity, logger

_SAMPLES = 64
_SAMPLE_BYTES = 4096
_PUBLISH_SECONDS = 1.0
_PATIENCE_SECONDS = 600.0

# ------------------------------------------------------------------------------------------------------------ the weights


def weights_digest(model: Any, *, full: bool = False) -> str:
    """What tells the weights of one model from those of another of the same name.

    Of a directory: sizes, safetensors headers and sampled bytes of its weight files. Of a model in memory: names, shapes, sampled elements and a
    sum over all bits of every parameter. With `full`, SHA-256 of everything.
    """
    digest = hashlib.sha256(b"full" if full else b"sampled")
    if isinstance(model, (str, Path)):
        _add_files(digest, Path(model), full)
    else:
        _add_parameters(digest, model, full)
    return digest.hexdigest()[:32]


def _add_files(digest: Any, directory: Path, full: bool) -> None:
    suffixes = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
    files = sorted(path for path in directory.iterdir() if path.suffix in suffixes) if directory.is_dir() else [directory]
    if not files:
        raise FileNotFoundError(f"no weights in {directory}")
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            if full:
                while chunk := file.read(1 << 22):
                    digest.update(chunk)
                continue
            head = file.read(8)
            if path.suffix == ".safetensors" and len(head) == 8:
                digest.update(file.read(min(int.from_bytes(head, "little"), 1 << 26)))
            for number in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))


def _add_parameters(digest: Any, model: Any, full: bool) -> None:
    import torch

    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        if tensor.is_complex() or tensor.element_size() not in bits or tensor.numel() == 0:
            continue
        flat = tensor.detach().contiguous().view(-1).view(bits[tensor.element_size()])
        if full:
            digest.update(flat.cpu().view(torch.uint8).numpy().tobytes())
            continue
        # Every bit of every weight counts in the sum; the samples tell where they are.
        digest.update(str(int(flat.sum(dtype=torch.int64))).encode())
        step = max(1, flat.numel() // 1024)
        digest.update(flat[::step].cpu().numpy().tobytes())


def _tokenizer_digest(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        parsed = json.loads(backend.to_str())
        parsed.pop("padding", None)  # These change with every call.
        parsed.pop("truncation", None)
        text = json.dumps(parsed, sort_keys=True)
    else:
        text = json.dumps(sorted(tokenizer.get_vocab().items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# --------------------------------------------------------------------------------------------------------- the extractor


def resolve_layers(layers: int | Sequence[int] | str, num_layers: int) -> list[int]:
    """"all", "last", "middle" (the middle third), one number or several; negative ones count from the end."""

    def checked(layer: int) -> int:
        if not -num_layers <= layer < num_layers:
            raise ValueError(f"Layer index {layer} out of range for a model with {num_layers} layers: [{-num_layers}, {num_layers - 1}]")
        return layer % num_layers

    if isinstance(layers, str):
        presets = {"all": range(num_layers), "last": [num_layers - 1], "middle": range(num_layers // 3, num_layers - num_layers // 3)}
        if layers not in presets:
            raise ValueError(f"Unknown layer specification: {layers!r}. Use an int, a list of ints, 'all', 'last' or 'middle'")
        return list(presets[layers])
    if isinstance(layers, int):
        return [checked(layers)]
    return [checked(layer) for layer in layers]


_TOKENS_FIRST = ("xlnet",)  # Models whose blocks give (tokens, prompts, dim).


class ActivationExtractor:
    """Outputs of the layers of a transformers model.

        ActivationExtractor("gpt2", layers=[3, -1], batch_size=16)
        ActivationExtractor(model, tokenizer=tokenizer, layers="all", pooling="mean")

    `model_name` is a path, a name on the hub, or a loaded model. `layers`: "all", "last", "middle", an int or a list, negative from the end.
    `dtype` is the one to load the model in. A layer's activation is the output of its block, before the final norm. Of an encoder-decoder, the
    layers are the encoder's.
    """

    def __init__(
        self, model_name: Any, device: str = "auto", layers: int | Sequence[int] | str = "all", batch_size: int = 8, *, tokenizer: Any = None,
        pooling: str | None = None, dtype: Any = None, revision: str | None = None, adapter: str | None = None, max_length: int | None = None,
        weights: str = "sampled", name: str | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ValueError(f"batch_size: expected at least 1, got {batch_size}")
        if weights not in ("sampled", "full", "none"):
            raise ValueError(f"weights: expected 'sampled', 'full' or 'none', got {weights!r}")
        if pooling not in (None, "last_token", "first_token", "mean", "max"):
            raise ValueError(f"Unknown pooling: {pooling!r}. Use 'last_token', 'first_token', 'mean' or 'max'")
        self.device = device
        self.layers_spec = layers
        self.batch_size = batch_size
        self.pooling = pooling
        self.max_length = max_length
        self._is_name = isinstance(model_name, (str, Path))
        self._source = str(model_name) if self._is_name else model_name
        self._name = name
        self._model = None if self._is_name else model_name
        self._tokenizer = tokenizer
        self._dtype = _dtype_named(dtype) if isinstance(dtype, str) else dtype
        self._revision = revision
        self._adapter = adapter
        self._weights = weights
        self._identity: ModelIdentity | None = None
        self._tuned: Any = None  # A module that an adapter changes: it knows whether adapters are off.
        self._layers: list[int] | None = None
        self._config: Any = None

    @property
    def config(self) -> Any:
        """The model's configuration; of a name it is read without the weights."""
        if self._config is None:
            if self._model is not None:
                self._config = self._model.config
            else:
                from transformers import AutoConfig

                self._config = AutoConfig.from_pretrained(self._source, revision=self._revision or "main")
        return self._config

    @property
    def model(self) -> Any:
        """The model, loaded at first use."""
        if self._model is None:
            import transformers

            names = getattr(self.config, "architectures", None) or []
            is_causal = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names)
            kind = transformers.AutoModelForCausalLM if is_causal else transformers.AutoModel
            options = {} if self._dtype is None else {"dtype": self._dtype}
            self._model = kind.from_pretrained(self._source, revision=self._revision or "main", **options)
            if self._adapter is not None:
                from peft import PeftModel

                self._model = PeftModel.from_pretrained(self._model, self._adapter)
            device = self.device
            if device == "auto":
                device = "cuda" if _torch().cuda.is_available() else "cpu"
            self._model.to(device).eval()
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, loaded at first use. It pads on the right."""
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            name = self._source if self._is_name else self.config._name_or_path
            self._tokenizer = AutoTokenizer.from_pretrained(name, revision=self._revision or "main")
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        return self._tokenizer

    @property
    def num_hidden_layers(self) -> int:
        """How many layers the model has."""
        for config in (self.config, getattr(self.config, "text_config", None)):
            for name in ("num_hidden_layers", "n_layer", "num_layers", "n_layers"):
                if isinstance(getattr(config, name, None), int):
                    return int(getattr(config, name))
        raise ValueError(f"cannot tell how many layers {self._source!r} has")

    @property
    def layer_indices(self) -> list[int]:
        """The chosen layers, from 0."""
        if self._layers is None:
            self._layers = resolve_layers(self.layers_spec, self.num_hidden_layers)
        return self._layers

    @property
    def num_layers(self) -> int:
        """How many layers are chosen."""
        return len(self.layer_indices)

    @property
    def dtype(self) -> Any:
        """The dtype in which the model computes, and activations come."""
        if self._model is None and self._dtype is not None:
            return self._dtype
        return next(self.model.parameters()).dtype

    @property
    def model_name(self) -> ModelIdentity:
        """The model's name with its revision, adapter, dtype, quantisation and digests of weights and tokenizer."""
        adapter = self._adapter_in_use()
        if self._identity is None or adapter != self._identity.fields.get("adapter"):
            config = self.config
            quantization = getattr(config, "quantization_config", None)
            self._identity = ModelIdentity(
                self._name or (self._source if self._is_name else config._name_or_path or type(self._model).__name__),
                revision=self._revision or getattr(config, "_commit_hash", None),
                adapter=adapter,
                dtype=str(self.dtype).removeprefix("torch."),
                quantization=None if quantization is None else json.dumps(_plain(quantization), sort_keys=True, default=str)[:200],
                weights=self._weights_field(),
                tokenizer=_tokenizer_digest(self.tokenizer),
                max_length=self.max_length,
            )
        return self._identity

    def _adapter_in_use(self) -> str | None:
        """As it was given; of a loaded model with adapters those that take part now, for they may be switched between two calls."""
        model = self._model
        if model is None or not ("peft_config" in vars(model) or hasattr(type(model), "peft_config")):
            return self._adapter
        if self._tuned is None:
            self._tuned = next((module for module in model.modules() if isinstance(getattr(module, "disable_adapters", None), bool)), model)
        if getattr(self._tuned, "disable_adapters", None) is True:
            return None
        active = model.active_adapters() if callable(model.active_adapters) else model.active_adapters
        return self._adapter if self._adapter is not None and list(active) == ["default"] else ",".join(sorted(map(str, active)))

    def _weights_field(self) -> str | None:
        if self._weights == "none":
            return None
        is_full = self._weights == "full"
        if self._is_name and self._model is None:
            directories = [_directory_of(self._source, self._revision)]
            if self._adapter is not None:  # It may be trained again in the same place.
                directories.append(_directory_of(self._adapter, None))
            digests = [None if directory is None else weights_digest(directory, full=is_full) for directory in directories]
            if None not in digests:
                return "+".join(map(str, digests))
        return weights_digest(self.model, full=is_full)

    def _called(self) -> Any:
        """What is run: the model, or the encoder of one that would want a decoder's input too."""
        return self.model.get_encoder() if getattr(self.config, "is_encoder_decoder", False) else self.model

    def _blocks(self) -> Any:
        """The modules whose outputs are the layers'; None if there is no list of so many, or if it puts tokens before prompts."""
        if getattr(self.config, "model_type", "") in _TOKENS_FIRST:
            return None
        searched = self._called()
        if hasattr(self.config, "text_config") and hasattr(searched, "get_decoder"):
            searched = searched.get_decoder()  # Not the tower of another sense that has as many layers.
        for _, module in searched.named_modules():
            if type(module).__name__ == "ModuleList" and len(module) == self.num_hidden_layers:
                return module
        return None

    def extract_batch(self, prompts: Sequence[str], layer_indices: Sequence[int], *, remote: bool = False) -> tuple[Any, Any]:
        """One forward pass: (prompts, tokens, layers × dim) and the attention mask, padded on the right."""
        states, inputs, _ = self._pass(prompts, layer_indices, self._called(), remote, take_logits=False)
        return pooled_rows(states, inputs["attention_mask"], self.pooling)

    def extract_batch_with_logits(
        self, prompts: Sequence[str], layer_indices: Sequence[int], *, remote: bool = False
    ) -> tuple[Any, Any, Any, Any]:
        """The same pass with what a language model says at its end: states (None without layers; never pooled), mask, logits (prompts, tokens,
        vocabulary), and token ids (prompts, tokens)."""
        states, inputs, logits = self._pass(prompts, layer_indices, self.model, remote, take_logits=True)
        if logits is None or logits.shape[:2] != inputs["input_ids"].shape:
            raise ValueError(f"{type(self.model).__name__} gives no logits for each token: load it with its language-model head")
        return states, inputs["attention_mask"], logits, inputs["input_ids"]

    def tokenize(self, prompts: Sequence[str]) -> Any:
        """What the model is given: padded on the right, cut to `max_length`."""
        tokenizer = self.tokenizer
        side, tokenizer.padding_side = tokenizer.padding_side, "right"
        try:
            options = {"truncation": True, "max_length": self.max_length} if self.max_length else {}
            return tokenizer(list(prompts), return_tensors="pt", padding=True, verbose=False, **options)
        finally:
            tokenizer.padding_side = side

    def _pass(
        self, prompts: Sequence[str], layer_indices: Sequence[int], model: Any, remote: bool, *, take_logits: bool
    ) -> tuple[Any, Any, Any]:
        """States of these layers side by side (None: no layers), the inputs, and the logits if there are any and they are to be taken."""
        torch = _torch()
        if remote:
            raise ValueError("ActivationExtractor runs the model here; wrap an extractor of a remote service for remote=True")
        inputs = self.tokenize(prompts)
        device = next(model.parameters()).device
        outputs: dict[int, Any] = {}

        def keep(layer: int) -> Callable[[Any, Any, Any], None]:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                outputs[layer] = output[0] if isinstance(output, tuple) else output

            return hook

        blocks = self._blocks() if layer_indices else []
        hooks = [] if blocks is None else [blocks[layer].register_forward_hook(keep(layer)) for layer in dict.fromkeys(layer_indices)]
        given = {name: value.to(device) for name, value in inputs.items() if name in ("input_ids", "attention_mask", "token_type_ids")}
        was_training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                output = model(**given, **({"output_hidden_states": True} if blocks is None else {}))
                if blocks is None:
                    outputs = self._hidden_states(output)
                logits = output.logits.detach().cpu() if take_logits and getattr(output, "logits", None) is not None else None
                del output  # Logits of a batch may be larger than all its states.
        finally:
            model.train(was_training)
            for hook in hooks:
                hook.remove()
        if missing := sorted(set(layer_indices) - outputs.keys()):
            raise ValueError(f"layers {missing} of {type(model).__name__} gave nothing: it does not run its {self.num_hidden_layers} layers one by one")
        states = torch.cat([outputs[layer].detach().cpu() for layer in layer_indices], dim=-1) if layer_indices else None
        return states, inputs, logits

    def _hidden_states(self, output: Any) -> dict[int, Any]:
        """By layer, of a model whose layers share their weights, or have another layout: as it tells them itself."""
        states = output.hidden_states
        if len(states) != self.num_hidden_layers + 1:
            raise ValueError(f"cannot find the {self.num_hidden_layers} layers of {type(self.model).__name__}: it gives {len(states)} hidden states")
        return dict(enumerate(states[1:]))

    def extract(self, prompts: Sequence[str], remote: bool = False, layers: Sequence[int] | None = None) -> tuple[Any, Any]:
        """All prompts, in batches: (prompts, tokens, layers × dim) and the attention mask. With pooling there is one token a prompt."""
        chosen = list(layers) if layers is not None else self.layer_indices
        parts = [
            self.extract_batch(prompts[first : first + self.batch_size], chosen, remote=remote)
            for first in range(0, len(prompts), self.batch_size)
        ]
        return _padded([(states[row], mask[row]) for states, mask in parts for row in range(len(states))])


def pooled_rows(states: Any, mask: Any, pooling: str | None) -> tuple[Any, Any]:
    """With pooling one row a prompt, as if it had one token; without, all as it is."""
    if pooling is None:
        return states, mask
    return cache.pool(states, mask, pooling).unsqueeze(1), mask.new_ones((len(mask), 1))


def _torch() -> Any:
    import torch

    return torch


def _directory_of(name: str, revision: str | None) -> Path | None:
    """Where the files of a model or an adapter are; None: not on this machine."""
    if Path(name).is_dir():
        return Path(name)
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except Exception:
        return None


def _dtype_named(name: str) -> Any:
    dtype = getattr(_torch(), name, None)
    if not isinstance(dtype, _torch().dtype) or not dtype.is_floating_point:
        raise ValueError(f"Unknown dtype: {name!r}. Expected one that a model computes in, such as 'float32', 'bfloat16' or 'float16'")
    return dtype


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value


def _padded(rows: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    torch = _torch()
    if not rows:
        return torch.zeros((0, 0, 0)), torch.zeros((0, 0), dtype=torch.int64)
    longest = max(len(mask) for _, mask in rows)
    states = torch.zeros((len(rows), longest, rows[0][0].shape[-1]), dtype=rows[0][0].dtype)
    masks = torch.zeros((len(rows), longest), dtype=rows[0][1].dtype)
    for place, (its_states, its_mask) in enumerate(rows):
        states[place, : len(its_mask)] = its_states
        masks[place, : len(its_mask)] = its_mask
    return states, masks


# ------------------------------------------------------------------------------------------------------------- the wrapper

# What may stand in for a wanted dtype: itself, or one with all of its bits, rounded as if it had been stored so.
_GOOD_FOR = {
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float32": ("float32",),
    "float64": ("float64",),
}


class CachedExtractor:
    """An extractor that computes only what is not stored.

    Takes anything with `model_name`, `layer_indices`, `batch_size` and `extract(prompts, remote=False)`; one that also has
    `extract_batch(prompts, layer_indices, remote=False)` is asked for the missing layers only.
    """

    retry_seconds = 1.0  # Before the first retry of a remote batch; doubles each time, up to a minute.

    def __init__(self, extractor: Any) -> None:
        self.extractor = extractor

    def extract(
        self, prompts: Sequence[str], remote: bool = False, invalidate_cache: bool = False, max_retries: int | None = None, cache_only: bool = False
    ) -> tuple[Any, Any] | None:
        """(prompts, tokens, layers × dim), padded on the right, and the attention mask, in the order asked for.

        Saves after every batch. With cache_only nothing is returned. Remote batches are retried (max_retries, else 3 times); what still fails is named
        in a RuntimeError at the end, and all others are stored. Other processes that extract the same prompts are given time: nothing is computed twice.
        """
        listed = cache._prompts_of(prompts)
        if max_retries is not None and operator.index(max_retries) < 0:
            raise ValueError(f"max_retries: expected None or at least 0, got {max_retries}")
        # The log tells every step: then nothing is taken at once.
        if not invalidate_cache and not cache_only and not settings.is_off() and not logger.isEnabledFor(logging.INFO):
            if (stored := _all_stored(self.extractor, listed)) is not None:
                return stored
        return _Run(self.extractor, listed, remote, max_retries, cache_only, self.retry_seconds).run(invalidate_cache)


def _all_stored(extractor: Any, prompts: list[str]) -> tuple[Any, Any] | None:
    """What extract() returns, if all of it is stored and sound: no run is begun for that. None: a run finds out what is missing."""
    part, pooling = _part_of(extractor)
    dtype = _wanted_dtype(extractor)
    wanted = cache._wanted_layers(part, pooling or "", tuple(map(operator.index, extractor.layer_indices)), _good_for(dtype), dtype)
    stored: tuple[Any, Any] | None = settings.current().with_torch().load_all(settings.keys_of(extractor.model_name), prompts, wanted)
    return stored


def _part_of(extractor: Any) -> tuple[str, str | None]:
    pooling = getattr(extractor, "pooling", None)
    return ("pooled", pooling) if isinstance(pooling, str) else ("raw", None)


def _wanted_dtype(extractor: Any) -> str | None:
    """None: the one that comes."""
    dtype = settings.wanted_dtype or getattr(extractor, "dtype", None)
    name = dtype if isinstance(dtype, str) else cache._name_of_dtype(dtype)
    name = name.removeprefix("torch.")
    return name if name in _GOOD_FOR else None


def _good_for(wanted: str | None) -> tuple[str, ...]:
    return cache._WIDEST_FIRST if wanted is None else _GOOD_FOR.get(wanted, (wanted,))


class _Run:
    """One call of CachedExtractor.extract()."""

    def __init__(self, extractor: Any, prompts: list[str], remote: bool, max_retries: int | None, cache_only: bool, retry_seconds: float) -> None:
        self.extractor = extractor
        self.prompts = prompts
        self.remote = remote
        self.retries = (3 if max_retries is None else max_retries) if remote else 0  # A local error is a real one.
        self.retry_seconds = retry_seconds
        self.cache_only = cache_only
        self.model = extractor.model_name
        self.layers = [operator.index(layer) for layer in extractor.layer_indices]  # numpy's and torch's too.
        if not self.layers:
            raise ValueError("layer_indices: expected at least one layer")
        self.part, self.pooling = _part_of(extractor)
        self.backend = settings.current()
        self.keys = settings.keys_of(self.model)
        self.native = self.backend.native
        self.wanted = _wanted_dtype(extractor)
        self.rows: dict[str, Any] = {}  # Prompt: (found or tensor, mask), held until they are returned, whatever is evicted meanwhile.
        self.failed: list[str] = []
        self.held: list[int] = []
        self.last_publication = time.monotonic()
        self.is_off = settings.is_off()
        self.is_writable = not self.is_off and not getattr(self.backend.store, "read_only", False)
        self.claims: Any = None
        if self.is_writable and isinstance(self.backend.store, _core.Store):
            try:
                self.claims = _core.ClaimFile(self.backend.store.path / "claims.lock")
            except Error as error:
                logger.debug(f"[CACHE] work is not shared with other processes: {error}")

    def run(self, invalidate: bool) -> tuple[Any, Any] | None:
        if invalidate and not self.is_off:
            logger.info("[CACHE] Cache invalidation requested")
            cache.invalidate_extraction_cache(self.model, self.prompts)
        unique = list(dict.fromkeys(self.prompts))
        logger.info(f"[CACHE] Checking cache for {len(unique)} prompts, requesting layers: {self.layers}")
        todo = {prompt: missing for prompt in unique if (missing := self._look_up(prompt))}
        count = len(todo)
        logger.info(f"[CACHE] HIT: {len(unique) - count}/{len(unique)} prompts already cached" + (f"; MISS: {count} need extraction" if count else ""))
        try:
            self._extract_all(todo)
            # Where the dtype was only learned now: what is stored with fewer bits does not do.
            narrow = {prompt: self.layers for prompt, (states, _) in self.rows.items() if not self._is_good(states)}
            if narrow:
                logger.info(f"[CACHE] MISS: {len(narrow)} prompts are stored in another dtype than {self.wanted}")
                self._extract_all(narrow)
        finally:
            self._publish()
        if self.failed:
            shown = ", ".join(repr(prompt[:60]) for prompt in self.failed[:20])
            raise RuntimeError(
                f"Remote extraction incomplete: {len(self.failed)} prompts failed after retries: {shown}"
                f"{' …' if len(self.failed) > 20 else ''}. {len(unique) - len(self.failed)}/{len(unique)} prompts are now cached; "
                "run again to retry the others."
            )
        return None if self.cache_only else self._assembled()

    # ------------------------------------------------------------------------------------------------------ looking up

    def _order(self) -> tuple[str, ...]:
        return _good_for(self.wanted)

    def _is_good(self, states: Any) -> bool:
        dtype = states.dtype() if isinstance(states, _core.FoundTensors) else str(states.dtype).removeprefix("torch.")
        return self.wanted is None or dtype in self._order()

    def _look_up(self, prompt: str) -> list[int]:
        """The layers that are missing. What is there is held; damage shows here, and counts as missing."""
        if self.is_off:
            return self.layers
        find_mask = self.part == "raw"
        mask = self.native.find_record(self.keys, prompt, "mask", []) if find_mask else None
        if find_mask and mask is None:
            return self.layers
        if self.cache_only:
            return self.native.missing_layers(self.keys, prompt, self.part, self.pooling or "", self.layers, self._order())
        found = self.native.find_layers(self.keys, prompt, self.part, self.pooling or "", self.layers, self._order())
        if found is not None and (mask is None or mask.shape()[0] == found.shape()[0]):
            self.rows[prompt] = (found, mask)
            return []
        missing = self.native.missing_layers(self.keys, prompt, self.part, self.pooling or "", self.layers, self._order())
        return missing or self.layers  # All there, but they do not fit together.

    # ------------------------------------------------------------------------------------------------------ extracting

    def _extract_all(self, todo: dict[str, list[int]]) -> None:
        waiting_since = time.monotonic()
        pause = 0.005
        while todo:
            batch, layers = self._claim_batch(todo, is_impatient=time.monotonic() - waiting_since > _PATIENCE_SECONDS)
            if not batch:
                if not todo:
                    break
                # All that is left is being computed by others. What they wait for is ours to publish first.
                self._publish()
                time.sleep(pause)
                pause = min(2 * pause, 0.25)
                self.native.refresh()
                for prompt in list(todo):
                    if not (missing := self._look_up(prompt)):
                        del todo[prompt]
                    else:
                        todo[prompt] = missing
                continue
            self._extract_batch(batch, layers)
            for prompt in batch:
                del todo[prompt]
            waiting_since, pause = time.monotonic(), 0.005
            if time.monotonic() - self.last_publication >= _PUBLISH_SECONDS:
                self._publish()

    def _claim_batch(self, todo: dict[str, list[int]], *, is_impatient: bool) -> tuple[list[str], list[int]]:
        """The next prompts that nobody else works on, all with the same missing layers. Drops from `todo` what others finished."""
        batch: list[str] = []
        layers: list[int] = []
        size = max(1, int(self.extractor.batch_size))
        tried: set[str] = set()
        while len(batch) < size:
            fresh: list[str] = []
            for prompt, missing in todo.items():
                if prompt in tried or (layers and missing != layers):
                    continue
                tried.add(prompt)
                if self.claims is not None and not is_impatient:
                    number = cache._hash_number(self.keys.encoding.hex(), self.part, self.pooling or "", prompt)
                    if not self.claims.try_claim(number):
                        continue
                    self.held.append(number)
                layers = layers or missing
                fresh.append(prompt)
                if len(batch) + len(fresh) == size:
                    break
            if not fresh:
                break
            if self.claims is not None:
                # Claimed now, but another may have finished it before.
                self.native.refresh()
                for prompt in fresh:
                    missing = self._look_up(prompt)
                    if not missing:
                        del todo[prompt]
                    elif missing == layers or not batch:
                        todo[prompt] = layers = missing
                        batch.append(prompt)
                    else:
                        todo[prompt] = missing
                        tried.discard(prompt)
                    if not batch:
                        layers = []
            else:
                batch += fresh
        return batch, layers

    def _extract_batch(self, batch: list[str], layers: list[int]) -> None:
        attempt = 0
        while True:
            try:
                states, masks, given = self._compute(batch, layers)
                break
            except Exception as error:
                if attempt >= self.retries:
                    if not self.remote or self.retries == 0:
                        raise
                    logger.error(f"[CACHE] {len(batch)} prompts failed after {self.retries} retries: {error}")
                    self.failed += batch
                    return
                delay = min(self.retry_seconds * 2**attempt, 60.0) * (1 + random.uniform(0, 0.25))
                logger.warning(f"[RETRY] attempt {attempt + 1}/{self.retries + 1} failed, again in {delay:.1f} s: {error}")
                time.sleep(delay)
                attempt += 1
        cache._check_is_tensor(states, "what the extractor gave as states")
        cache._check_is_tensor(masks, "what the extractor gave as masks")
        if len(states) != len(batch) or len(masks) != len(batch):
            raise RuntimeError(f"the extractor gave {len(states)} rows and {len(masks)} masks for {len(batch)} prompts")
        states = states.detach().cpu()
        if self.wanted is None and not self.is_off:
            self.wanted = cache._stored_dtype(states)
        for row, prompt in enumerate(batch):
            mask = cache._on_cpu(masks[row]).contiguous()
            first, end = cache._kept_positions(mask)
            self._keep(prompt, layers, given, states[row, first:end], mask[first:end])

    def _compute(self, batch: list[str], layers: list[int]) -> tuple[Any, Any, list[int]]:
        torch = _torch()
        options = {"remote": self.remote}
        with torch.no_grad():
            if hasattr(self.extractor, "extract_batch"):
                states, masks = self.extractor.extract_batch(batch, layers, **options)
                return states, masks, layers
            states, masks = self.extractor.extract(batch, **options)
            return states, masks, self.layers

    def _keep(self, prompt: str, layers: list[int], given: list[int], states: Any, mask: Any) -> None:
        is_stored = False
        if not self.is_off:
            its_mask = mask if self.part == "raw" else None
            is_stored = cache._save_layers(self.model, prompt, self.part, self.pooling or "", given, states, wanted=layers, mask=its_mask)
        if self.cache_only:
            return
        if is_stored and not self._look_up(prompt):
            return
        # Not stored: it is returned from here. The layers that were there before come from the store.
        if self.wanted is not None and states.is_floating_point():
            states = states.to(getattr(_torch(), self.wanted))
        dim = states.shape[1] // len(given)
        parts = {layer: states[:, place * dim : (place + 1) * dim] for place, layer in enumerate(given)}
        for layer in self.layers:
            if layer not in parts:
                found = self.native.find_layers(self.keys, prompt, self.part, self.pooling or "", [layer], self._order())
                if found is None:
                    raise RuntimeError(f"layer {layer} of {prompt[:60]!r} was evicted while it was needed; raise the limit")
                parts[layer] = cache._tensor_of(found).to(states.dtype)
        self.rows[prompt] = (_torch().cat([parts[layer] for layer in self.layers], dim=1), mask)

    def _publish(self) -> None:
        self.last_publication = time.monotonic()
        if self.is_writable:
            settings.flush(self.backend)
        for number in self.held:
            self.claims.release(number)
        self.held = []

    # ----------------------------------------------------------------------------------------------------------- returning

    def _assembled(self) -> tuple[Any, Any]:
        torch = _torch()
        if not self.prompts:
            return torch.zeros((0, 0, 0)), torch.zeros((0, 0), dtype=torch.int64)
        heights, masks = {}, {}
        for prompt, (states, mask) in self.rows.items():
            heights[prompt] = int(states.shape()[0] if isinstance(states, _core.FoundTensors) else states.shape[0])
            if isinstance(mask, _core.FoundTensors):
                mask = cache._tensor_of(mask)
            masks[prompt] = torch.ones(heights[prompt], dtype=torch.int64) if mask is None else mask
        some = self.rows[self.prompts[0]][0]
        if self.wanted is None:
            self.wanted = some.dtype() if isinstance(some, _core.FoundTensors) else str(some.dtype).removeprefix("torch.")
            if not all(self._is_good(states) for states, _ in self.rows.values()):
                raise ValueError("the prompts are stored in different dtypes; set_cache_dtype() says which one is wanted")
        width = len(some) * some.shape()[1] if isinstance(some, _core.FoundTensors) else int(some.shape[1])
        longest = max(heights[prompt] for prompt in self.prompts)
        result = torch.empty((len(self.prompts), longest, width), dtype=getattr(torch, self.wanted))
        _core.expect_large(result.data_ptr(), result.numel() * result.element_size())
        result_mask = torch.zeros((len(self.prompts), longest), dtype=masks[self.prompts[0]].dtype)
        stride = width * result.element_size()
        for place, prompt in enumerate(self.prompts):
            states, height = self.rows[prompt][0], heights[prompt]
            if isinstance(states, _core.FoundTensors):
                if height:
                    states.copy_layers_to(result.data_ptr() + place * longest * stride, self.wanted, stride)
            else:
                result[place, :height] = states
            result[place, height:] = 0
            result_mask[place, :height] = masks[prompt]
        logger.info(f"[CACHE] Complete: returned activations shape {tuple(result.shape)}")
        return result, result_mask
