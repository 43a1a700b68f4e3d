"""A project that had plumbing of its own between backend and probes changes one import line: these are the habits it keeps.

The backend, the runner and the report below are written as such a project writes them: counters are given, set and copied, a trace is put into
a running backend, events are made by hand, errors are told by their words.
"""

from __future__ import annotations

import copy
import gc
import json
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lmemo.forward import BackendInstrumentation, BackendStats, ForwardCache, TraceWriter


class View:
    """One side of a backend: every scoring method is a call of cached()."""

    def __init__(self, name: str, inst: BackendInstrumentation) -> None:
        self.id = name
        self._inst = inst
        self.passes: list[str] = []

    def _run(self, prompt: str) -> str:
        self.passes.append(prompt)
        return f"{self.id} says {len(prompt)}"

    def next_token_dist(self, prompt: str, *, top_k: int = 256) -> str:
        return self._inst.cached("next_token_dist", self.id, prompt, top_k, lambda: self._run(prompt))

    def next_token_dists(self, prompts: list[str], *, top_k: int = 256) -> list[str]:
        return self._inst.cached_batch(
            "next_token_dist", self.id, prompts, top_k, lambda missing: [self._run(prompts[index]) for index in missing]
        )


class Backend:
    def __init__(self) -> None:
        self._inst = BackendInstrumentation()
        self.base = View("base", self._inst)
        self.tuned = View("ft", self._inst)

    def close(self) -> None:
        self._inst.close()


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_suite_of_probes_over_one_backend_with_a_trace_put_in_later(tmp_path: Path) -> None:
    backend = Backend()
    backend.base.next_token_dist("warm-up")
    trace_file = tmp_path / "runs" / "7" / "trace.jsonl"
    backend._inst.trace = TraceWriter(trace_file)
    for probe in ("delta_kl", "prompt_collapse"):
        backend._inst.set_current_probe(probe)
        for prompt in ("warm-up", "one", "two"):
            assert backend.base.next_token_dist(prompt) != backend.tuned.next_token_dist(prompt)
    backend._inst.set_current_probe(None)
    assert backend.base.next_token_dists(["one", "three"]) == ["base says 3", "base says 5"]
    backend.close()

    assert backend.base.passes == ["warm-up", "one", "two", "three"]
    assert backend.tuned.passes == ["warm-up", "one", "two"]
    events = events_of(trace_file)
    assert [event["probe"] for event in events] == ["delta_kl"] * 6 + ["prompt_collapse"] * 6 + [None] * 2
    assert [event["hit"] for event in events] == [True] + [False] * 5 + [True] * 6 + [True, False]
    assert {event["view_id"] for event in events} == {"base", "ft"}
    assert {frozenset(event) for event in events} == {
        frozenset({"ts", "probe", "view_id", "prompt_hash", "top_k", "op", "wall_ms", "hit"})
    }
    # What was computed before there was a trace has the same name as what came later.
    assert len({event["prompt_hash"] for event in events if event["op"] == "next_token_dist"}) == 4
    snapshot = dict(backend._inst.stats.to_dict())
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert (snapshot["cache_hits"], snapshot["cache_misses"], snapshot["forward_passes"]) == (8, 7, 7)


def test_what_a_probe_asked_is_in_the_file_when_the_next_one_is_named(tmp_path: Path) -> None:
    backend = Backend()
    trace_file = tmp_path / "trace.jsonl"
    backend._inst.trace = TraceWriter(trace_file)
    for number, probe in enumerate(["delta_kl", "prompt_collapse", None], start=0):
        backend._inst.set_current_probe(probe)
        assert len(events_of(trace_file)) == 2 * number
        backend.base.next_token_dist("one")
        backend.tuned.next_token_dist("one")
    backend.close()


def test_counters_are_copied_at_one_moment() -> None:
    backend = Backend()
    backend.base.next_token_dists(["a", "b"])
    with pytest.raises(ZeroDivisionError):
        backend._inst.cached("op", "base", "c", 1, lambda: 1 / 0)
    before = copy.copy(backend._inst.stats)
    sent = pickle.loads(pickle.dumps(before))
    backend.base.next_token_dists(["a", "b", "c"])
    assert (before.total_lookups, before.failures, backend._inst.stats.total_lookups) == (2, 1, 5)
    assert before == sent == copy.deepcopy(before)
    assert before.to_dict(everything=True) == sent.to_dict(everything=True)


def test_a_trace_is_replaced_and_taken_out_again(tmp_path: Path) -> None:
    inst = BackendInstrumentation(trace_path=tmp_path / "first.jsonl")
    first = inst.trace
    inst.cached("op", "base", "a", 1, int)
    second = inst.trace = TraceWriter(tmp_path / "second.jsonl")
    assert inst.trace is second
    inst.cached("op", "base", "a", 1, int)
    inst.trace = TraceWriter(None)
    inst.cached("op", "base", "a", 1, int)
    first.close()
    second.close()
    assert [event["hit"] for event in events_of(tmp_path / "first.jsonl")] == [False]
    assert [event["hit"] for event in events_of(tmp_path / "second.jsonl")] == [True]
    with pytest.raises(TypeError, match="expected a TraceWriter, found None"):
        inst.trace = None  # type: ignore[assignment]


def test_a_trace_put_in_by_the_computation_itself_has_its_line(tmp_path: Path) -> None:
    inst = BackendInstrumentation()

    def compute() -> str:
        inst.trace = TraceWriter(tmp_path / "trace.jsonl")
        return "value"

    assert inst.cached("op", "base", "a", 1, compute) == "value"
    with pytest.raises(ZeroDivisionError):
        inst.cached("op", "base", "b", 1, lambda: 1 / 0)
    inst.close()
    [missed, failed] = events_of(tmp_path / "trace.jsonl")
    assert (missed["view_id"], missed["hit"]) == ("base", False)
    assert failed["error"] == "ZeroDivisionError"
    assert missed["prompt_hash"] != failed["prompt_hash"]


def test_counters_are_given_by_name_set_and_read() -> None:
    given = BackendStats(cache_hits=3, cache_misses=7, forward_passes=7, scoring_wall_s=1.5)
    assert (given.total_lookups, given.hit_rate, given.to_dict()["scoring_wall_s"]) == (10, pytest.approx(0.3), 1.5)
    batched = BackendStats(batches_sent=2, batched_prompts=12, max_batch_size=8).to_dict()
    assert (batched["batches_sent"], batched["batched_prompts"], batched["max_batch_size"], batched["avg_batch_size"]) == (2, 12, 8, 6.0)
    assert (BackendStats().hit_rate, BackendStats().avg_batch_size) == (0.0, 0.0)

    backend = Backend()
    backend.base.next_token_dists(["a", "b"])
    stats = backend._inst.stats
    stats.batches_sent = 0
    stats.batched_prompts = 0
    stats.max_batch_size = 0
    backend.base.next_token_dists(["b", "a"])
    assert (stats.batches_sent, stats.batched_prompts, stats.max_batch_size, stats.avg_batch_size) == (0, 0, 0, 0.0)
    stats.cache_hits += 5
    assert stats.cache_hits == 7


def test_a_batch_of_the_wrong_length_is_called_a_bug_of_the_backend() -> None:
    inst = BackendInstrumentation()
    with pytest.raises(RuntimeError, match="backend bug.*1 values for 3 misses"):
        inst.cached_batch("op", "base", ["a", "b", "c"], 32, lambda missing: [0])
    assert len(inst.cache) == 0
    assert inst.cached_batch("op", "base", [], 32, lambda missing: pytest.fail("nothing is missing")) == []


def test_the_cache_alone_with_keys_and_a_sentinel_of_its_own() -> None:
    from lmemo.forward import _MISS

    cache = ForwardCache(maxsize=2)
    cache.put(("op", "base", "a", 32), 1)
    cache.put(("op", "base", "b", 32), None)
    assert cache.get(("op", "base", "a", 32)) == 1
    cache.put(("op", "ft", "a", 32), 3)
    assert cache.get(("op", "base", "b", 32)) is _MISS
    assert (cache.get(("op", "base", "a", 32)), cache.get(("op", "ft", "a", 32)), len(cache)) == (1, 3, 2)
    cache.clear()
    assert len(cache) == 0
    with pytest.raises(ValueError, match="maxsize must be positive; got 0"):
        ForwardCache(maxsize=0)


def test_caches_and_traces_can_be_referred_to_weakly() -> None:
    inst = BackendInstrumentation()
    cache, trace = weakref.ref(inst.cache), weakref.ref(inst.trace)
    assert (cache(), trace()) == (inst.cache, inst.trace)
    del inst
    gc.collect()
    assert (cache(), trace()) == (None, None)


def test_events_made_by_hand(tmp_path: Path) -> None:
    from lmemo.forward import _TraceEvent

    event = _TraceEvent(ts=1.23, probe="dk", view_id="base", prompt_hash="abc", top_k=32, op="next_token_dist", wall_ms=0.75, hit=False)
    nothing = TraceWriter(None)
    nothing.write(event)
    nothing.close()
    assert not any(tmp_path.iterdir())

    writer = TraceWriter(tmp_path / "trace.jsonl")
    writer.write(event)
    event.probe, event.hit = None, True
    writer.write(event)
    writer.close()
    writer.close()
    writer.write(event)
    [first, second] = events_of(tmp_path / "trace.jsonl")
    assert first == {"ts": 1.23, "probe": "dk", "view_id": "base", "prompt_hash": "abc", "top_k": 32, "op": "next_token_dist",
                     "wall_ms": 0.75, "hit": False}  # fmt: skip
    assert (second["probe"], second["hit"]) == (None, True)


def test_traces_and_probes_change_while_threads_ask(tmp_path: Path) -> None:
    inst = BackendInstrumentation()
    prompts = [f"prompt {number}" for number in range(64)]
    inst.cached_batch("op", "base", prompts, 1, lambda missing: missing)
    is_over = threading.Event()

    def ask(seed: int) -> int:
        asked = 0
        while not is_over.is_set():
            assert inst.cached("op", "base", prompts[(asked * 7 + seed) % 64], 1, lambda: -1) == (asked * 7 + seed) % 64
            assert inst.cached_batch("op", "base", prompts[:4], 1, lambda missing: missing) == [0, 1, 2, 3]
            asked += 1
        return asked

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, seed) for seed in range(4)]
        for number in range(30):
            inst.set_current_probe(f"probe {number}")
            inst.trace = TraceWriter(tmp_path / f"{number}.jsonl" if number % 3 else None)
            assert inst.current_probe == f"probe {number}"
        is_over.set()
        asked = sum(done.result() for done in asking)
    inst.close()
    assert inst.stats.total_lookups == 64 + 5 * asked
    for path in tmp_path.iterdir():
        assert all(event["view_id"] == "base" and event["hit"] for event in events_of(path))
