"""lmemo for EleutherAI's lm-evaluation-harness: answers of a model, each computed once, never another model's.

    import lm_eval
    from lmemo.lm_eval import CachedLM

    lm = CachedLM(lm_eval.models.huggingface.HFLM("gpt2"), store=lmemo.Store())
    lm_eval.simple_evaluate(model=lm, tasks=["arc_easy"])

The harness's own cache (use_cache=) keys an answer by the request alone, so another model that is given the same file gets the first one's scores. Here
the key holds the model: name, revision, adapter, dtype, weights, tokenizer, and what the harness is told that changes scores.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lm_eval import __version__ as _harness_version
from lm_eval.api.model import LM

from lmemo.forward import BackendInstrumentation, ModelView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lmemo import StoreBase

__all__ = ["CachedLM", "view_of"]

_OPERATIONS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
# What decides a score besides the model itself, where a harness model has it.
_SETTINGS = ("max_length", "add_bos_token", "backend", "prefix_token_id", "truncation", "softmax_dtype", "think_end_token", "logits_cache")


def view_of(lm: Any) -> ModelView:
    """The identity of a harness model that runs on transformers. Raises ValueError for another: only its user knows what it is."""
    model, tokenizer = getattr(lm, "model", None), getattr(lm, "tokenizer", None)
    if not hasattr(model, "state_dict") or not hasattr(model, "config") or tokenizer is None:
        raise ValueError(
            f"{type(lm).__name__} does not show its weights, so lmemo cannot tell it from another model; "
            'give model=ModelView("lm_eval", model=…, revision=…) with everything that changes its answers'
        )
    from lmemo.hf import model_view

    settings: dict[str, Any] = {name: _plain(getattr(lm, name, None)) for name in _SETTINGS}
    return model_view("lm_eval", model, tokenizer, harness=_harness_version, lm=type(lm).__name__, **settings)


def _plain(value: Any) -> None | bool | int | float | str:
    return value if isinstance(value, (type(None), bool, int, float, str)) else str(value)


def _prompt_of(arguments: Iterable[Any]) -> Any | None:
    """The arguments of a request as part of a key; None if they cannot be one (images, sampling)."""
    parts = []
    for argument in arguments:
        if isinstance(argument, dict):
            if argument.get("do_sample", False):
                return None  # Every sample is another.
            try:
                argument = json.dumps(argument, sort_keys=True)
            except (TypeError, ValueError):
                return None
        if not isinstance(argument, str):
            return None
        parts.append(argument)
    return tuple(parts)


class _PartialResults:
    """What the harness's models tell while they work: results are kept at once, so a kill costs little.

    A model may tell a request that is not quite the one it was given (stop words taken out), so only those that were given count.
    """

    def __init__(self, instrumentation: BackendInstrumentation, view: str) -> None:
        self._instrumentation = instrumentation
        self._view = view
        self.expected: dict[str, set[Any]] = {}

    def add_partial(self, attr: str, req: Any, res: Any) -> None:
        prompt = _prompt_of(req) if attr in self.expected else None
        if prompt is not None and prompt in self.expected[attr]:
            self._instrumentation.put(attr, self._view, prompt, None, res)


class CachedLM(LM):  # type: ignore[misc]
    """A harness model whose answers are looked up first.

    model: the identity, if the model cannot show its weights; see view_of().
    instrumentation: counters, trace and cache; by default one of its own, over the store that is given.
    Requests with sampling or with more than text are passed on. Everything else that is asked of this object is asked of the model.
    """

    lm: Any
    view_id: str
    instrumentation: BackendInstrumentation
    _partial: _PartialResults

    def __init__(
        self,
        lm: Any,
        *,
        model: str | None = None,
        store: StoreBase | None = None,
        instrumentation: BackendInstrumentation | None = None,
    ) -> None:
        if store is not None and instrumentation is not None:
            raise ValueError("CachedLM: give a store, or an instrumentation that has one")
        set_attribute = super().__setattr__
        set_attribute("lm", lm)
        set_attribute("view_id", view_of(lm) if model is None else model)
        set_attribute(
            "instrumentation",
            BackendInstrumentation(store=store, cache_maxsize=100_000) if instrumentation is None else instrumentation,
        )
        set_attribute("_partial", _PartialResults(self.instrumentation, self.view_id))
        lm.set_cache_hook(self._partial)

    def __getattribute__(self, name: str) -> Any:
        # The base class has answers of its own (rank, chat_template, …); they are not the model's.
        if name in _OWN or name.startswith("__"):
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("lm"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.lm, name, value)

    def loglikelihood(self, requests: list[Any], *arguments: Any, **named: Any) -> list[tuple[float, bool]]:
        """(log-probability, is it the greedy choice) of each continuation after its context."""
        return self._answers("loglikelihood", requests, arguments, named)

    def loglikelihood_rolling(self, requests: list[Any], *arguments: Any, **named: Any) -> list[float]:
        """The log-probability of each text."""
        return self._answers("loglikelihood_rolling", requests, arguments, named)

    def generate_until(self, requests: list[Any], *arguments: Any, **named: Any) -> list[str]:
        """What the model goes on to say, greedily."""
        return self._answers("generate_until", requests, arguments, named)

    def _answers(self, operation: str, requests: list[Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        compute = getattr(self.lm, operation)
        prompts = [_prompt_of(request.args) for request in requests]
        known = [index for index, prompt in enumerate(prompts) if prompt is not None]
        others = [index for index, prompt in enumerate(prompts) if prompt is None]
        answers: list[Any] = [None] * len(requests)

        def compute_missing(missing: list[int]) -> list[Any]:
            self._partial.expected[operation] = {prompts[known[place]] for place in missing}
            try:
                return list(compute([requests[known[place]] for place in missing], *arguments, **named))
            finally:
                del self._partial.expected[operation]

        found = self.instrumentation.cached_batch(
            operation, self.view_id, [prompts[index] for index in known], None, compute_missing
        )
        for index, answer in zip(known, found):
            answers[index] = answer
        if others:
            for index, answer in zip(others, compute([requests[index] for index in others], *arguments, **named)):
                answers[index] = answer
        return answers


_OWN = {"lm", "view_id", "instrumentation", "_partial", "_answers", *_OPERATIONS}
