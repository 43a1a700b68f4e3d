"""BackendInstrumentation on scripted scenarios: what is computed, what is counted, what is raised."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import random
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lmemo.forward import _MISS, BackendInstrumentation, BackendStats, ForwardCache, ModelView


def never() -> Any:
    raise AssertionError("this was computed before")


def never_batch(indices: list[int]) -> Any:
    raise AssertionError(f"{indices} were computed before")


def counters(stats: BackendStats) -> tuple[int, ...]:
    return (stats.cache_hits, stats.cache_misses, stats.forward_passes, stats.batches_sent, stats.batched_prompts, stats.max_batch_size)


def test_a_miss_computes_and_a_hit_does_not() -> None:
    inst = BackendInstrumentation()
    value = object()
    assert inst.cached("op", "base", "prompt", 256, lambda: value) is value
    assert inst.cached("op", "base", "prompt", 256, never) is value
    assert inst.cached(op="op", view_id="base", prompt="prompt", top_k=256, compute=never) is value
    assert counters(inst.stats) == (2, 1, 1, 0, 0, 0)
    assert inst.stats.total_lookups == 3
    assert inst.stats.hit_rate == 2 / 3
    assert inst.stats.scoring_wall_s > 0
    assert len(inst.cache) == 1


def test_a_cached_none_is_not_computed_again() -> None:
    inst = BackendInstrumentation()
    assert inst.cached("op", "base", "prompt", 1, lambda: None) is None
    assert inst.cached("op", "base", "prompt", 1, never) is None


def test_every_part_of_a_call_counts() -> None:
    inst = BackendInstrumentation()
    calls = [("op", "base", "prompt", 1), ("op2", "base", "prompt", 1), ("op", "ft", "prompt", 1), ("op", "base", "Prompt", 1),
             ("op", "base", "prompt", 2), ("op", "base", "prompt ", 1), ("op", "base", "", 1), ("op", "base", "prompt", None)]  # fmt: skip
    for call in calls:
        inst.cached(*call, lambda: call)
    for call in calls:
        assert inst.cached(*call, never) == call
        assert inst.cache.get(call) == call
    assert counters(inst.stats) == (len(calls), len(calls), len(calls), 0, 0, 0)


def test_any_str_is_a_prompt_and_all_of_it_counts() -> None:
    inst = BackendInstrumentation(cache_maxsize=1000)
    prompts = ["\ud800", "\udfff", "\ud800\udfff", "\U00010000", "\0", "", "a\0b", "é", "e\u0301", "x" * 100_000, "x" * 100_001,
               "\ud800" * 500, "日本語", *(f"the same beginning {'y' * 300} {n}" for n in range(500))]  # fmt: skip
    for prompt in prompts:
        inst.cached("op", "base", prompt, 1, lambda: (prompt,))
    for prompt in prompts:
        again = "".join(list(prompt))  # Equal, but another object.
        assert inst.cached("op", "base", again, 1, never) == (prompt,)
    assert inst.stats.cache_misses == len(prompts)


def test_a_failing_computation_stores_nothing() -> None:
    inst = BackendInstrumentation()

    def fail() -> Any:
        raise ZeroDivisionError("no such token")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="no such token"):
            inst.cached("op", "base", "prompt", 1, fail)
    assert (inst.stats.failures, len(inst.cache), *counters(inst.stats)) == (2, 0, 0, 0, 0, 0, 0, 0)
    assert inst.cached("op", "base", "prompt", 1, lambda: 7) == 7


def test_wrong_arguments_are_refused_in_words() -> None:
    inst = BackendInstrumentation()
    with pytest.raises(TypeError, match="'compute'"):
        inst.cached("op", "base", "prompt", 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="a second value for argument 'op'"):
        inst.cached("op", "base", "prompt", 1, op="x")  # type: ignore[misc,call-arg]
    with pytest.raises(TypeError, match="unexpected argument 'k'"):
        inst.cached("op", "base", "prompt", k=1, compute=never)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="6 were given"):
        inst.cached("op", "base", "prompt", 1, never, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unhashable"):
        inst.cached("op", "base", [], 1, never)
    with pytest.raises(TypeError):
        BackendInstrumentation(256)  # type: ignore[misc]
    with pytest.raises(ValueError, match="maxsize must be positive; got 0"):
        BackendInstrumentation(cache_maxsize=0)


# ---------------------------------------------------------------------------------------------------------- batches


def test_a_batch_computes_what_is_missing_in_one_call_and_keeps_the_order() -> None:
    inst = BackendInstrumentation()
    inst.cached("op", "base", "b", 1, lambda: "B")
    asked: list[list[int]] = []

    def compute(indices: list[int]) -> list[str]:
        asked.append(indices)
        return [prompts[index].upper() for index in indices]

    prompts = ["a", "b", "c"]
    assert inst.cached_batch("op", "base", prompts, 1, compute) == ["A", "B", "C"]
    assert asked == [[0, 2]]
    assert counters(inst.stats) == (1, 3, 3, 1, 2, 2)
    assert inst.cached_batch("op", "base", prompts, 1, never_batch) == ["A", "B", "C"]
    assert inst.cached("op", "base", "a", 1, never) == "A"
    assert counters(inst.stats) == (5, 3, 3, 1, 2, 2)
    assert inst.stats.avg_batch_size == 2.0
    assert inst.cached_batch("op", "base", ["d"], 1, lambda indices: ("D" for _ in indices)) == ["D"]
    assert counters(inst.stats) == (5, 4, 4, 2, 3, 2)
    assert inst.stats.avg_batch_size == 1.5


def test_an_empty_batch_is_an_empty_list() -> None:
    inst = BackendInstrumentation()
    assert inst.cached_batch("op", "base", [], 1, never_batch) == []
    assert counters(inst.stats) == (0, 0, 0, 0, 0, 0)
    assert inst.stats.to_dict()["scoring_wall_s"] == 0


def test_duplicates_in_a_batch_are_computed_once_and_counted_truthfully() -> None:
    inst = BackendInstrumentation()
    asked: list[int] = []

    def compute(indices: list[int]) -> list[int]:
        asked.extend(indices)
        return [index * 10 for index in indices]

    assert inst.cached_batch("op", "base", ["a", "b", "a", "a", "c", "b"], 1, compute) == [0, 10, 0, 0, 40, 10]
    assert asked == [0, 1, 4]
    assert counters(inst.stats) == (3, 3, 3, 1, 3, 3)
    assert inst.stats.total_lookups == 6


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_results_is_an_error_and_nothing_is_stored(count: int) -> None:
    inst = BackendInstrumentation()
    with pytest.raises(RuntimeError, match=f"{count} values for 2 misses"):
        inst.cached_batch("op", "base", ["a", "b"], 1, lambda indices: [0] * count)
    assert len(inst.cache) == 0
    assert counters(inst.stats) == (0, 0, 0, 0, 0, 0)
    assert inst.cached_batch("op", "base", ["a", "b"], 1, lambda indices: [1, 2]) == [1, 2]


@pytest.mark.parametrize("results", [{0: "one", 1: "two"}, {"one", "two"}, frozenset({1, 2})], ids=lambda results: type(results).__name__)
def test_a_batch_that_answers_with_a_dict_or_a_set_is_an_error_and_nothing_is_stored(results: Any) -> None:
    inst = BackendInstrumentation()
    with pytest.raises(TypeError, match=f"backend bug: compute_misses returned a {type(results).__name__}; it must return a list"):
        inst.cached_batch("op", "base", ["a", "b"], 1, lambda missing: results)
    with pytest.raises(TypeError, match="backend bug"):
        asyncio.run(inst.acached_batch("op", "base", ["a", "b"], 1, lambda missing: results))
    assert len(inst.cache) == 0
    assert (inst.stats.failures, inst.stats.total_lookups, inst.stats.batches_sent) == (4, 0, 0)


def test_a_failing_batch_stores_nothing_and_keeps_what_was_there() -> None:
    inst = BackendInstrumentation()
    inst.cached("op", "base", "a", 1, lambda: 1)

    def fail(indices: list[int]) -> Any:
        raise ValueError("too long")

    with pytest.raises(ValueError, match="too long"):
        inst.cached_batch("op", "base", ["a", "b", "c"], 1, fail)
    assert (len(inst.cache), inst.stats.failures, *counters(inst.stats)) == (1, 2, 1, 1, 1, 0, 0, 0)


def test_the_list_of_prompts_may_change_meanwhile() -> None:
    inst = BackendInstrumentation()
    prompts = ["a", "b", "c"]

    def compute(indices: list[int]) -> list[str]:
        found = [prompts[index] for index in indices]
        prompts.clear()
        indices.clear()
        return found

    assert inst.cached_batch("op", "base", prompts, 1, compute) == ["a", "b", "c"]
    assert inst.cached("op", "base", "c", 1, never) == "c"


def test_a_batch_larger_than_the_cache_still_answers() -> None:
    inst = BackendInstrumentation(cache_maxsize=3)
    prompts = [str(n) for n in range(50)]
    assert inst.cached_batch("op", "base", prompts, 1, lambda indices: indices) == list(range(50))
    assert len(inst.cache) == 3
    assert inst.cache.get(("op", "base", "46", 1)) is _MISS
    assert inst.cache.get(("op", "base", "47", 1)) == 47


# ------------------------------------------------------------------------------------------------------------ counters


def test_counters_begin_at_nothing() -> None:
    stats = BackendStats()
    assert (stats.total_lookups, stats.hit_rate, stats.avg_batch_size) == (0, 0.0, 0.0)
    assert stats.to_dict() == {
        "cache_hits": 0, "cache_misses": 0, "forward_passes": 0, "scoring_wall_s": 0.0, "hit_rate": 0.0,
        "batches_sent": 0, "batched_prompts": 0, "max_batch_size": 0, "avg_batch_size": 0.0,
    }  # fmt: skip


def test_counters_can_be_given_and_set() -> None:
    stats = BackendStats(cache_hits=3, cache_misses=1, batches_sent=2, batched_prompts=7, max_batch_size=5, scoring_wall_s=1.5)
    assert (stats.hit_rate, stats.avg_batch_size, stats.total_lookups) == (0.75, 3.5, 4)
    stats.cache_hits += 4
    stats.scoring_wall_s += 1
    assert stats.to_dict()["hit_rate"] == 7 / 8
    assert stats.scoring_wall_s == pytest.approx(2.5)
    assert stats == BackendStats(cache_hits=7, cache_misses=1, batches_sent=2, batched_prompts=7, max_batch_size=5, scoring_wall_s=2.5)
    assert stats != BackendStats()
    assert "cache_hits=7" in repr(stats) and "failures" not in repr(stats)
    assert set(stats.to_dict(everything=True)) - set(stats.to_dict()) == {
        "failures", "shared", "store_hits", "stored", "memory_only", "unreadable"}  # fmt: skip


def test_eight_threads_and_100_000_lookups_are_counted_exactly() -> None:
    inst = BackendInstrumentation(cache_maxsize=10_000)
    computed = [0] * 8
    per_thread, prompts = 12_500, [f"prompt {n}" for n in range(500)]
    start = threading.Barrier(8)

    def work(thread: int) -> None:
        chance = random.Random(thread)

        def compute() -> str:
            computed[thread] += 1
            return prompt

        start.wait()
        for _ in range(per_thread):
            prompt = chance.choice(prompts)
            assert inst.cached("op", "base", prompt, 1, compute) == prompt

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stats = inst.stats
    assert sum(computed) == len(prompts) == stats.forward_passes == stats.cache_misses
    assert stats.cache_hits + stats.cache_misses == stats.total_lookups == 8 * per_thread == 100_000


def test_batches_of_eight_threads_are_counted_exactly() -> None:
    inst = BackendInstrumentation(cache_maxsize=10_000)
    computed: list[int] = []
    largest = [0] * 8

    def work(thread: int) -> None:
        chance = random.Random(thread)
        for _ in range(100):
            prompts = [chance.randrange(2000) for _ in range(chance.randrange(1, 40))]

            def compute(indices: list[int]) -> list[int]:
                computed.extend(prompts[index] for index in indices)
                largest[thread] = max(largest[thread], len(indices))
                return [prompts[index] for index in indices]

            assert inst.cached_batch("op", "base", [str(n) for n in prompts], 1, compute) == prompts
            lookups[thread] += len(prompts)

    lookups = [0] * 8
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    stats = inst.stats
    assert len(computed) == len(set(computed)) == stats.forward_passes == stats.cache_misses == stats.batched_prompts
    assert stats.total_lookups == sum(lookups)
    assert stats.max_batch_size == max(largest)


# -------------------------------------------------------------------------------------------------------- around it


def test_two_models_two_adapters_two_dtypes_under_one_name_are_never_shared() -> None:
    inst = BackendInstrumentation()
    views = [
        ModelView("base", model="gpt2"),
        ModelView("base", model="gpt2-xl"),
        ModelView("base", model="gpt2", revision="main"),
        ModelView("base", model="gpt2", adapter="a"),
        ModelView("base", model="gpt2", adapter="b"),
        ModelView("base", model="gpt2", dtype="float16"),
        ModelView("base", model="gpt2", dtype="float32"),
        ModelView("base", model="gpt2", weights="ab12"),
        ModelView("base", model="gpt2", quantised=True),
        ModelView("base", model="gpt2", quantised="True"),
        "base",
    ]
    for number, view in enumerate(views):
        assert inst.cached("op", view, "prompt", 1, lambda: number) == number
    for number, view in enumerate(views):
        assert inst.cached("op", view, "prompt", 1, never) == number
    assert inst.cached("op", ModelView("base", model="gpt2"), "prompt", 1, never) == 0, "equal by what it says"


def test_a_model_view_is_a_str_with_fields() -> None:
    import copy
    import pickle

    view = ModelView("ft", model="gpt2", adapter="runs/7", layers=12)
    assert isinstance(view, str)
    assert view.fields == {"view_id": "ft", "model": "gpt2", "revision": None, "adapter": "runs/7", "dtype": None, "weights": None, "layers": 12}
    assert repr(view) == "ModelView('ft', adapter='runs/7', layers=12, model='gpt2')"
    for twin in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):
        assert type(twin) is ModelView and twin == view and twin.fields == view.fields
    with pytest.raises(ValueError, match="prompt already"):
        ModelView("ft", model="gpt2", prompt="x")
    with pytest.raises(TypeError, match="layers is a list"):
        ModelView("ft", model="gpt2", layers=[1])  # type: ignore[arg-type]


def test_a_context_manager_and_closing_twice() -> None:
    with BackendInstrumentation() as inst:
        inst.set_current_probe("delta_kl")
        assert inst.current_probe == "delta_kl"
        inst.cached("op", "base", "prompt", 1, lambda: 1)
    inst.close()
    assert inst.cached("op", "base", "prompt", 1, never) == 1
    inst.set_current_probe(None)
    assert inst.trace.path is None and inst.store is None


def test_subclasses_work() -> None:
    class Mine(BackendInstrumentation):
        def __init__(self) -> None:
            super().__init__(cache_maxsize=7)
            self.name = "mine"

    inst = Mine()
    assert inst.cached("op", "base", "prompt", 1, lambda: 1) == 1
    assert (inst.cache.maxsize, inst.name) == (7, "mine")


def test_a_subclass_that_forgets_to_make_its_base_is_told() -> None:
    class Mine(BackendInstrumentation):
        def __init__(self) -> None:
            self.name = "mine"

    class Cache(ForwardCache):
        def __init__(self) -> None:
            pass

    for ask in (
        lambda: Mine().cached("op", "base", "prompt", 1, lambda: 1),
        lambda: Mine().cached_batch("op", "base", ["prompt"], 1, lambda missing: missing),
        lambda: Cache().get("key"),
        lambda: Cache().put("key", 1),
    ):
        with pytest.raises(RuntimeError, match=r"(Mine|Cache): super\(\).__init__\(\) was not called"):
            ask()


def test_it_is_collected_when_results_refer_to_it() -> None:
    inst = BackendInstrumentation()
    gone = weakref.ref(inst)
    inst.cached("op", "base", "prompt", 1, lambda: [inst])
    del inst
    gc.collect()
    assert gone() is None


def test_clearing_the_cache_means_computing_again() -> None:
    inst = BackendInstrumentation()
    inst.cached("op", "base", "prompt", 1, lambda: 1)
    inst.cache.clear()
    assert inst.cached("op", "base", "prompt", 1, lambda: 2) == 2


def test_a_limit_in_bytes_holds_here_too() -> None:
    inst = BackendInstrumentation(cache_maxsize=1000, cache_max_bytes=10_000)
    for n in range(100):
        inst.cached("op", "base", str(n), 1, lambda: bytes(1000))
    assert 0 < inst.cache.byte_count <= 10_000


@pytest.mark.parametrize("module", ["lmemo.forward", "lmemo.hf", "lmemo.lm_eval"])
def test_every_public_name_is_documented(module: str) -> None:
    public = importlib.import_module(module)
    for name in public.__all__:
        thing = getattr(public, name)
        assert inspect.getdoc(thing), name
        assert thing.__module__ == module or name in ("encode_value", "decode_value"), name
        for member, value in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith("_") and not isinstance(value, types.MemberDescriptorType):
                assert inspect.getdoc(value), f"{name}.{member}"
