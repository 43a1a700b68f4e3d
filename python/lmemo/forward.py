"""Results of scoring calls, each computed once: in memory, across runs if you like, never another prompt's or another model's.

    from lmemo.forward import BackendInstrumentation

    with BackendInstrumentation(store=lmemo.Store(), trace_path="trace.jsonl") as inst:
        dist = inst.cached("next_token_dist", "base", prompt, 256, lambda: model.next_token_dist(prompt, 256))
        dists = inst.cached_batch("next_token_dist", "base", prompts, 256, lambda missing: model.many([prompts[i] for i in missing]))
        print(inst.stats.to_dict())

`lmemo forward trace trace.jsonl` shows where the time went. docs/forward.md has the whole story.
"""

from __future__ import annotations

import atexit as _atexit
import dataclasses as _dataclasses
import sys as _sys
import time as _time
from typing import TYPE_CHECKING, Any, TypeVar

from lmemo import _core
from lmemo._core import _MISS, BackendStats, ForwardCache, TraceWriter, decode_value, encode_value
from lmemo._errors import Incompatible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    import numpy
    from numpy.typing import NDArray

__all__ = [
    "BackendInstrumentation",
    "BackendStats",
    "ForwardCache",
    "ModelView",
    "RollingLogprob",
    "TokenDist",
    "TraceWriter",
    "decode_value",
    "encode_value",
    "register",
    "size_of",
]

T = TypeVar("T")

for _public in (BackendStats, ForwardCache, TraceWriter):
    _public.__module__ = __name__

# What is queued at the end is written, even if nobody closed the writer.
_atexit.register(_core.close_all_traces)


# --------------------------------------------------------------------------------------------------------- identity


class ModelView(str):
    """A view_id that carries the identity of its model, so that a swapped adapter or another dtype is a miss.

        base = ModelView("base", model="gpt2", revision="607a30d", dtype="float32")
        tuned = ModelView("ft", model="gpt2", revision="607a30d", adapter="runs/7@sha256:ab12", dtype="float32")

    It is a str, and equal exactly if all fields are. In a store every field has its own name, so that `lmemo explain` can tell which of
    them differs. `weights` is a digest of the weights, for models that change under one name.
    """

    __slots__ = ("_key_fields",)
    _key_fields: tuple[tuple[str, None | bool | int | float | str], ...]

    def __new__(
        cls,
        view_id: str,
        *,
        model: str,
        revision: str | None = None,
        adapter: str | None = None,
        dtype: str | None = None,
        weights: str | None = None,
        **more: None | bool | int | float | str,
    ) -> ModelView:
        """Further fields may be given by name: whatever else changes the answers (quantisation, a chat template, …)."""
        import json

        fields = {"model": model, "revision": revision, "adapter": adapter, "dtype": dtype, "weights": weights, **more}
        if taken := {"op", "prompt", "top_k", "float16"} & fields.keys():
            raise ValueError(f"ModelView: {', '.join(sorted(taken))} already mean something else in a key; use another name")
        for name, value in fields.items():
            if not isinstance(value, (type(None), bool, int, float, str)):
                raise TypeError(f"ModelView: {name} is a {type(value).__name__}; expected str, a number, bool or None")
        view = super().__new__(cls, f"{view_id} {json.dumps(fields, sort_keys=True)}")
        view._key_fields = (("view_id", str(view_id)), *sorted(fields.items()))
        return view

    @property
    def fields(self) -> dict[str, None | bool | int | float | str]:
        """Everything that counts: view_id, model, revision, adapter, dtype, weights, …"""
        return dict(self._key_fields)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        fields = self.fields
        return (fields.pop("view_id"),), fields

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._key_fields[1:] if value is not None)
        return f"ModelView({self._key_fields[0][1]!r}, {shown})"


# -------------------------------------------------------------------------------------------------- results and classes

_classes: dict[str, type] = {}
_names: dict[type, str] = {}


def register(cls: type[T], name: str | None = None) -> type[T]:
    """Lets results of this dataclass come back from a store as what they were. Usable as a decorator.

    The name (default: module and qualified name) is what the store knows it by. Nothing of the class runs when a result is read: its
    fields are set, __init__ and __post_init__ are not called.
    """
    if not (isinstance(cls, type) and _dataclasses.is_dataclass(cls)):
        raise TypeError(f"register: expected a dataclass, found {cls!r}")
    chosen = name or f"{cls.__module__}.{cls.__qualname__}"
    known = _classes.get(chosen)
    # A class that was defined anew, as in a notebook, takes the place of the old one.
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"register: {chosen!r} is already {known!r}; give another name")
    _classes[chosen] = cls
    _names[cls] = chosen
    return cls


def _name_of(cls: type) -> str:
    return _names.get(cls) or f"{cls.__module__}.{cls.__qualname__}"


def _fields_of(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in _dataclasses.fields(cls))


def _class_of(name: str) -> type:
    try:
        return _classes[name]
    except KeyError:
        raise Incompatible(
            f"a stored result is a dataclass {name!r}, which is not registered here; "
            f"call lmemo.forward.register({name.rpartition('.')[2]}) before asking for it"
        ) from None


class _Comparable:
    """Equal if every field is, arrays by their elements (NaN equals NaN)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        import numpy

        return all(
            numpy.array_equal(mine, its, equal_nan=True) if isinstance(mine, numpy.ndarray) else mine == its
            for name in _fields_of(type(self))
            for mine, its in [(getattr(self, name), getattr(other, name))]
        )

    __hash__ = None  # type: ignore[assignment]


@register
@_dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TokenDist(_Comparable):
    """The most likely next tokens, most likely first. A store keeps the ids in as few bytes as the vocabulary needs."""

    token_ids: NDArray[numpy.integer[Any]]
    logprobs: NDArray[numpy.floating[Any]]  #: Natural logarithms over the whole vocabulary.
    vocab_size: int
    tail_logprob: float | None = None  #: Of all other tokens together; None: not known or none left.


@register
@_dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RollingLogprob(_Comparable):
    """What a text costs, token by token. The first token has no probability and is not among `logprobs`."""

    token_ids: NDArray[numpy.integer[Any]]
    logprobs: NDArray[numpy.floating[Any]]  #: Of token_ids[1:].
    num_tokens: int
    total_logprob: float

    @property
    def mean_logprob(self) -> float:
        """Per predicted token; 0.0 if there is none."""
        return self.total_logprob / len(self.logprobs) if len(self.logprobs) else 0.0

    @property
    def perplexity(self) -> float:
        """exp(-mean_logprob)"""
        import math

        return math.exp(-self.mean_logprob)


def size_of(value: Any) -> int:
    """About how many bytes a result takes in memory: arrays and tensors by their data, containers with what is in them."""
    total, seen, waiting = 0, set(), [value]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        data_bytes = getattr(item, "nbytes", None)
        if isinstance(data_bytes, int) and not isinstance(item, (bytes, bytearray)):
            total += 112 + data_bytes  # A view's own size says nothing of the data it keeps alive.
            continue
        total += _sys.getsizeof(item)
        if isinstance(item, dict):
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += item
        elif _dataclasses.is_dataclass(item) and not isinstance(item, type):
            waiting += (getattr(item, name) for name in _fields_of(type(item)))
        elif hasattr(item, "__dict__") and not isinstance(item, type):
            waiting += vars(item).values()
    return total


def _prompt_hash(prompt: str) -> str:
    """What a trace calls the prompt: the first half of its SHA-256."""
    import hashlib

    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@_dataclasses.dataclass(slots=True)
class _TraceEvent:
    """A line of a trace made by hand, for TraceWriter.write()."""

    ts: float
    probe: str | None
    view_id: str
    prompt_hash: str
    top_k: int
    op: str
    wall_ms: float
    hit: bool


# ----------------------------------------------------------------------------------------------------------- the middle

_HIT, _LEAD, _WAIT, _MINE, _SOLO = range(5)  # As FlightTable::Role in python/src/forward_flights.h.


class BackendInstrumentation(_core.Instrumentation):
    """What sits between a scoring backend and its callers: one cache, one trace, one set of counters.

    The same call — op, view_id, whole prompt, top_k — is computed once. Threads and tasks that ask for it at the same time share one
    computation; a computation may itself ask. Without a store results live as long as this object.
    """

    async def acached(
        self, op: str, view_id: str, prompt: Any, top_k: Any, compute: Callable[[], Awaitable[T] | T]
    ) -> T:
        """As cached(), for asyncio: tasks that wait leave the loop to others. compute may be a coroutine function or a plain one."""
        started = _time.perf_counter()
        while True:
            role, found, wait_number = self._begin(op, view_id, prompt, top_k, None)
            if role == _HIT:
                return found  # type: ignore[no-any-return]
            if role == _WAIT:
                is_there, value = await self._wait(found, wait_number, started)
                if is_there:
                    return value  # type: ignore[no-any-return]
                continue  # Whoever computed it was cancelled.
            [value] = await self._compute([found], compute, lambda value: [value])
            return value  # type: ignore[no-any-return]

    async def acached_batch(
        self,
        op: str,
        view_id: str,
        prompts: Sequence[Any],
        top_k: Any,
        compute_misses: Callable[[list[int]], Awaitable[Iterable[T]] | Iterable[T]],
    ) -> list[T]:
        """As cached_batch(), for asyncio."""
        prompts = tuple(prompts)
        results: list[Any] = [None] * len(prompts)
        batch = object()
        leads: dict[Any, tuple[int, Any]] = {}
        others: list[tuple[int, Any, int]] = []
        started = _time.perf_counter()
        try:
            for index, prompt in enumerate(prompts):
                if prompt in leads:  # Its second place in the batch.
                    others.append((index, leads[prompt][1], 0))
                    continue
                role, found, wait_number = self._begin(op, view_id, prompt, top_k, batch)
                if role == _HIT:
                    results[index] = found
                elif role in (_LEAD, _SOLO):
                    leads[prompt] = (index, found)
                else:
                    others.append((index, found, wait_number))
            if leads:
                indices = [index for index, _ in leads.values()]
                values = await self._compute(
                    [flight for _, flight in leads.values()],
                    lambda: compute_misses(indices),
                    lambda given: _core.checked_results(given, len(indices), op, view_id),
                    is_batch=True,
                )
                for index, value in zip(indices, values):
                    results[index] = value
            while others:
                index, flight, wait_number = others[-1]
                if wait_number:
                    is_there, value = await self._wait(flight, wait_number, started)
                else:
                    is_there, value = self._outcome(flight, None, 0.0)
                others.pop()
                if not is_there:
                    alone = [index]
                    [value] = await self.acached_batch(op, view_id, [prompts[index]], top_k, lambda _: compute_misses(alone))
                results[index] = value
        except BaseException as error:
            for _, flight in leads.values():
                self._fail(flight, error, 0.0)  # Those that have not ended.
            for _, _, wait_number in others:
                self._leave(wait_number)
            raise
        return results

    async def _compute(
        self, flights: list[Any], compute: Callable[[], Any], values_of: Callable[[Any], Any], is_batch: bool = False
    ) -> list[Any]:
        """Ends every flight, in one way or the other."""
        token = _core._flights.set((*_core._flights.get(()), *flights))
        began = _time.perf_counter()
        try:
            given = compute()
            if hasattr(given, "__await__"):
                given = await given
            wall_seconds = _time.perf_counter() - began
            values = values_of(given)
            if is_batch:
                self._note_batch(len(flights))
            return [self._finish(flight, value, wall_seconds / len(flights)) for flight, value in zip(flights, values)]
        except BaseException as error:
            wall_seconds = _time.perf_counter() - began
            for flight in flights:
                self._fail(flight, error, wall_seconds / len(flights))
            raise
        finally:
            try:
                _core._flights.reset(token)
            except ValueError:  # Closed by another context than it ran in.
                pass

    async def _wait(self, flight: Any, wait_number: int, started: float) -> tuple[bool, Any]:
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:  # The loop was closed; nobody waits there any more.
                pass

        self._call_when_done(flight, wake)
        try:
            await done
        finally:
            self._leave(wait_number)
        return self._outcome(flight, None, _time.perf_counter() - started)
