"""lmemo for HuggingFace transformers.

    from lmemo.forward import BackendInstrumentation
    from lmemo.hf import ScoringView

    view = ScoringView(model, tokenizer, view_id="base", instrumentation=BackendInstrumentation(store=lmemo.Store()))
    view.next_token_dist("The capital of France is", top_k=10)
    view.rolling_logprob_batch(texts)

The key of every result holds what the model is: its name and revision, its adapter, its dtype and a digest of its weights, its
configuration and its tokenizer. So two models never share a result, also if they share a name.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from lmemo.forward import BackendInstrumentation, ModelView, RollingLogprob, TokenDist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ScoringView", "adapter_state", "config_digest", "model_view", "tokenizer_digest", "weights_digest"]


# --------------------------------------------------------------------------------------------------------- identity


def weights_digest(model: Any) -> str:
    """SHA-256 over the name, type, shape and bytes of every parameter and saved buffer: about a second per GB."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if not isinstance(tensor, torch.Tensor):
            digest.update(f"{name} {tensor!r}\n".encode())
            continue
        if tensor.is_meta:
            raise ValueError(f"the weights of {name} are not loaded, so they have no digest; give weights= a name that changes with them")
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        data = tensor.detach().contiguous().cpu().reshape(-1)
        if data.numel():
            digest.update(data.view(torch.uint8).numpy())
    return digest.hexdigest()


def tokenizer_digest(tokenizer: Any) -> str:
    """SHA-256 over what turns text into ids."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        text = backend.to_str()
    else:
        text = repr((type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), sorted(map(str, tokenizer.all_special_tokens))))
    special = [getattr(tokenizer, name, None) for name in ("bos_token_id", "eos_token_id", "add_bos_token", "add_eos_token")]
    return hashlib.sha256(f"{special}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def config_digest(config: Any) -> str:
    """SHA-256 over the model's configuration, but for where it came from and for which library wrote it down."""
    import json

    fields = config.to_dict()
    for name in ("_name_or_path", "transformers_version", "_commit_hash"):
        fields.pop(name, None)
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()


def _adapter_layers(model: Any) -> list[Any]:
    """The layers into which PEFT put adapters."""
    return [module for module in model.modules() if hasattr(module, "disable_adapters") and hasattr(module, "merged_adapters")]


def adapter_state(layers: Sequence[Any]) -> str | None:
    """Which adapters act now, in words; None if none does."""
    states = {
        (() if layer.disable_adapters else tuple(layer.active_adapters), tuple(layer.merged_adapters)) for layer in layers
    }
    if not states or states == {((), ())}:
        return None
    return " | ".join(sorted(f"active {','.join(active) or '-'}, merged {','.join(merged) or '-'}" for active, merged in states))


def model_view(view_id: str, model: Any, tokenizer: Any, *, weights: str | None = None, **more: None | bool | int | float | str) -> ModelView:
    """The identity of a transformers model and its tokenizer as they are now."""
    config = model.config
    return ModelView(
        view_id,
        model=str(getattr(config, "_name_or_path", "") or type(model).__name__),
        revision=getattr(config, "_commit_hash", None),
        adapter=adapter_state(_adapter_layers(model)),
        dtype=str(model.dtype).removeprefix("torch."),
        weights=weights or weights_digest(model),
        config=config_digest(config),
        tokenizer=tokenizer_digest(tokenizer),
        **more,
    )


# ---------------------------------------------------------------------------------------------------------- scoring


class ScoringView:
    """Scores of a causal language model, each computed once.

    view_id names the view in traces; the identity of the model is added by itself, and is looked at again whenever the weights or the adapter
    changed. What PyTorch does not notice (a write through `.data`) needs a call of refresh().

    instrumentation: the cache; by default one in memory of its own.
    max_length: tokens the model takes; by default what its configuration says. Longer inputs are refused, never cut.
    batch_size: prompts per forward pass.
    weights: a name that changes with the weights, instead of their digest.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        view_id: str = "base",
        instrumentation: BackendInstrumentation | None = None,
        *,
        max_length: int | None = None,
        batch_size: int = 16,
        weights: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be positive; got {batch_size}")
        self.model = model
        self.tokenizer = tokenizer
        self.instrumentation = BackendInstrumentation() if instrumentation is None else instrumentation
        self.max_length = max_length if max_length is not None else _max_length_of(model)
        self.batch_size = batch_size
        self._name = view_id
        self._weights = weights
        self._state: Any = None
        self._view: str = view_id
        self.refresh()

    @property
    def view_id(self) -> str:
        """The name and the identity of the model as it is now: what is part of every key."""
        if not isinstance(self._name, ModelView) and self._current_state() != self._state:
            self.refresh()
        return self._view

    def refresh(self) -> None:
        """Looks at the model again: its weights, adapters, configuration and tokenizer."""
        if isinstance(self._name, ModelView):  # The caller knows better.
            self._view = self._name
            return
        self._parameters = list(self.model.parameters())
        self._layers = _adapter_layers(self.model)
        self._state = self._current_state()
        self._view = model_view(self._name, self.model, self.tokenizer, weights=self._weights)

    def _current_state(self) -> Any:
        # A parameter that was written to has another version; one that was replaced or converted, another place.
        return (
            [(parameter._version, parameter.data_ptr()) for parameter in self._parameters],
            adapter_state(self._layers),
            self.model.dtype,
        )

    # ------------------------------------------------------------------------------------------------- the three scores

    def next_token_dist(self, prompt: str, top_k: int = 256) -> TokenDist:
        """The top_k most likely next tokens."""
        return self.instrumentation.cached(
            "next_token_dist", self.view_id, prompt, top_k, lambda: self._dists([prompt], top_k)[0]
        )

    def next_token_dist_batch(self, prompts: Sequence[str], top_k: int = 256) -> list[TokenDist]:
        """The same for many prompts, in as few forward passes as fit."""
        return self.instrumentation.cached_batch(
            "next_token_dist", self.view_id, prompts, top_k, lambda missing: self._dists([prompts[i] for i in missing], top_k)
        )

    def rolling_logprob(self, text: str) -> RollingLogprob:
        """What each token of the text costs, given those before it."""
        return self.instrumentation.cached("rolling_logprob", self.view_id, text, 0, lambda: self._rolling([text])[0])

    def rolling_logprob_batch(self, texts: Sequence[str]) -> list[RollingLogprob]:
        """The same for many texts."""
        return self.instrumentation.cached_batch(
            "rolling_logprob", self.view_id, texts, 0, lambda missing: self._rolling([texts[i] for i in missing])
        )

    def logprob_of(self, prompt: str, completion: str) -> float:
        """The log-probability of the completion after the prompt."""
        pair = (prompt, completion)
        return self.instrumentation.cached("logprob_of", self.view_id, pair, 0, lambda: self._completions([pair])[0])

    def logprob_of_batch(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The same for many pairs of prompt and completion."""
        pairs = [(prompt, completion) for prompt, completion in pairs]
        return self.instrumentation.cached_batch(
            "logprob_of", self.view_id, pairs, 0, lambda missing: self._completions([pairs[i] for i in missing])
        )

    # --------------------------------------------------------------------------------------------------------- tokens

    def _ids_of(self, text: str, what: str) -> list[int]:
        ids = list(self.tokenizer(text, verbose=False)["input_ids"])
        if not ids and self.tokenizer.bos_token_id is not None:
            ids = [self.tokenizer.bos_token_id]
        return self._checked(ids, what, text)

    def _pair_ids_of(self, prompt: str, completion: str) -> tuple[list[int], int]:
        """The ids of both together, and how many belong to the completion."""
        before = self._ids_of(prompt, "prompt")
        together = list(self.tokenizer(prompt + completion, verbose=False)["input_ids"])
        if together[: len(before)] != before:  # They melt into one token at the border: keep the border.
            together = before + list(self.tokenizer(completion, add_special_tokens=False, verbose=False)["input_ids"])
        return self._checked(together, "prompt with its completion", prompt + completion), len(together) - len(before)

    def _checked(self, ids: list[int], what: str, text: str) -> list[int]:
        if not ids:
            raise ValueError(f"the {what} {text[:40]!r} has no tokens, and the tokenizer has no token to begin with")
        if self.max_length is not None and len(ids) > self.max_length:
            raise ValueError(
                f"the {what} {text[:40]!r}… has {len(ids)} tokens; the model takes at most {self.max_length}. Shorten it, or give "
                "max_length= if the model takes more"
            )
        return ids

    # ------------------------------------------------------------------------------------------------------ the model

    def _forward(self, rows: list[list[int]], positions: list[list[int]], use: Callable[[int, Any], None]) -> None:
        """Calls use(row, logprobs) with the log-probabilities after each of the row's positions, in float32.

        Rows of similar length go together, padded on the right: a causal model does not look there, and positions stay what they are alone.
        """
        import torch

        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        device = self.model.device
        keeps_some = _takes(self.model, "logits_to_keep")
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                for first in range(0, len(order), self.batch_size):
                    chosen = order[first : first + self.batch_size]
                    length = max(len(rows[row]) for row in chosen)
                    ids = torch.zeros((len(chosen), length), dtype=torch.long)
                    mask = torch.zeros((len(chosen), length), dtype=torch.long)
                    for place, row in enumerate(chosen):
                        ids[place, : len(rows[row])] = torch.tensor(rows[row], dtype=torch.long)
                        mask[place, : len(rows[row])] = 1
                    # Only where somebody asks: all logits of a batch can take more memory than the model.
                    needed = sorted({position for row in chosen for position in positions[row]})
                    place_of = {position: place for place, position in enumerate(needed)}
                    options: dict[str, Any] = {"use_cache": False}
                    if keeps_some:
                        options["logits_to_keep"] = torch.tensor(needed, dtype=torch.long, device=device)
                    logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device), **options).logits
                    for place, row in enumerate(chosen):
                        places = [place_of[position] for position in positions[row]] if keeps_some else positions[row]
                        wanted = torch.tensor(places, dtype=torch.long, device=logits.device)
                        use(row, torch.log_softmax(logits[place, wanted].float(), dim=-1))
        finally:
            self.model.train(was_training)

    def _dists(self, prompts: list[str], top_k: int) -> list[TokenDist]:
        import torch

        if top_k < 1:
            raise ValueError(f"top_k must be positive; got {top_k}")
        rows = [self._ids_of(prompt, "prompt") for prompt in prompts]
        dists: dict[int, TokenDist] = {}

        def use(row: int, logprobs: Any) -> None:
            [last] = logprobs
            vocabulary = last.shape[-1]
            values, ids = torch.topk(last, min(top_k, vocabulary))
            tail = None
            if top_k < vocabulary:
                tail = float(torch.logsumexp(last.scatter(0, ids, float("-inf")), dim=-1))
            dists[row] = TokenDist(ids.cpu().numpy().astype("int32"), values.cpu().numpy(), vocabulary, tail)

        self._forward(rows, [[len(ids) - 1] for ids in rows], use)
        return [dists[row] for row in range(len(rows))]

    def _rolling(self, texts: list[str]) -> list[RollingLogprob]:
        import numpy
        import torch

        rows = [self._ids_of(text, "text") for text in texts]
        found: dict[int, RollingLogprob] = {}

        def use(row: int, logprobs: Any) -> None:
            ids = rows[row]
            following = torch.tensor(ids[1:], dtype=torch.long, device=logprobs.device).unsqueeze(-1)
            costs = logprobs.gather(-1, following).squeeze(-1).cpu().numpy()
            found[row] = RollingLogprob(numpy.array(ids, dtype=numpy.int32), costs, len(ids), float(costs.sum(dtype=numpy.float64)))

        self._forward(rows, [list(range(len(ids) - 1)) for ids in rows], use)
        return [found[row] for row in range(len(rows))]

    def _completions(self, pairs: list[tuple[str, str]]) -> list[float]:
        import torch

        both = [self._pair_ids_of(*pair) for pair in pairs]
        found: dict[int, float] = {}

        def use(row: int, logprobs: Any) -> None:
            ids, count = both[row]
            following = torch.tensor(ids[len(ids) - count :], dtype=torch.long, device=logprobs.device).unsqueeze(-1)
            found[row] = float(logprobs.gather(-1, following).sum(dtype=torch.float64))

        self._forward([ids for ids, _ in both], [list(range(len(ids) - count - 1, len(ids) - 1)) for ids, count in both], use)
        return [found[row] for row in range(len(both))]


def _takes(model: Any, argument: str) -> bool:
    """Whether the model's forward() has such an argument, seen through PEFT's wrapper."""
    import inspect

    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return argument in inspect.signature(inner.forward).parameters


def _max_length_of(model: Any) -> int | None:
    config = model.config
    if hasattr(config, "get_text_config"):  # Of a model that also sees or hears.
        config = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value - _reserved_positions(model)
    return None


def _reserved_positions(model: Any) -> int:
    """RoBERTa and its kin count positions from the padding's on, so the first places of the table are nobody's."""
    import torch

    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            return int(module.padding_idx) + 1
    return 0
