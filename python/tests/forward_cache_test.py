"""ForwardCache: an LRU over hashable keys, in entries and in bytes."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from lmemo.forward import _MISS, ForwardCache, size_of


@pytest.mark.parametrize("maxsize", [0, -1, -(10**30)])
def test_a_maxsize_that_is_not_positive_is_refused(maxsize: int) -> None:
    with pytest.raises(ValueError, match=f"maxsize must be positive; got {maxsize}$"):
        ForwardCache(maxsize=maxsize)


def test_a_cached_none_is_a_hit_and_a_miss_is_the_sentinel() -> None:
    cache = ForwardCache()
    assert cache.get("key") is _MISS
    cache.put("key", None)
    assert cache.get("key") is None
    assert len(cache) == 1
    cache.clear()
    assert cache.get("key") is _MISS
    assert len(cache) == 0


def test_the_least_recently_used_goes_first_and_a_get_is_a_use() -> None:
    cache = ForwardCache(maxsize=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, _MISS, 3]
    assert cache.evictions == 1


def test_a_put_replaces_and_is_a_use() -> None:
    cache = ForwardCache(maxsize=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 10)
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [10, _MISS, 3]
    assert len(cache) == 2


class Named:
    """A key with code of its own for comparing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return other == self.name if isinstance(other, str) else isinstance(other, Named) and other.name == self.name


KEYS: list[Any] = [
    *range(20),
    *(f"text {n}" for n in range(20)),
    *(("next_token_dist", "base", f"prompt {n}", 256) for n in range(20)),
    *((n, str(n), None, 0.5) for n in range(5)),
    *((n, (str(n), b"x")) for n in range(5)),
    *(frozenset({n, -1}) for n in range(5)),
    *(Named(f"text {n}") for n in range(15, 25)),
    *((Named("op"), "v", str(n), 1) for n in range(5)),
    (1, 2, 3, 4), (True, 2, 3.0, 4), ("\ud800", "v", "\udfff lone", 1), None, b"", "", (), 0.5, 2**70,
]  # fmt: skip


@pytest.mark.parametrize("maxsize", [1, 3, 16, 1000])
def test_it_does_what_an_ordered_dict_does(maxsize: int) -> None:
    chance = random.Random(maxsize)
    cache, model = ForwardCache(maxsize=maxsize), OrderedDict[Any, Any]()
    for step in range(20_000):
        key = chance.choice(KEYS)
        if chance.random() < 0.5:
            cache.put(key, step)
            model[key] = step
            model.move_to_end(key)
            while len(model) > maxsize:
                model.popitem(last=False)
        else:
            expected = model.get(key, _MISS)
            assert cache.get(key) is expected or cache.get(key) == expected
            if expected is not _MISS:
                model.move_to_end(key)
        assert len(cache) == len(model)


def test_what_cannot_be_a_key_is_refused() -> None:
    cache = ForwardCache()
    with pytest.raises(TypeError, match="unhashable"):
        cache.get([])
    with pytest.raises(TypeError, match="unhashable"):
        cache.put(("op", "view", [], 1), 1)
    with pytest.raises(TypeError):
        cache.put("key")  # type: ignore[call-arg]
    assert len(cache) == 0


def test_a_comparison_that_raises_or_uses_the_cache_is_no_trouble() -> None:
    cache = ForwardCache()

    class Odd(Named):
        def __eq__(self, other: object) -> bool:
            cache.put("from within", 1)
            cache.clear()
            if self.name == "raises":
                raise ArithmeticError("cannot compare")
            return super().__eq__(other)

        __hash__ = Named.__hash__

    cache.put(Odd("same"), 1)
    assert cache.get(Odd("same")) is _MISS  # The comparison cleared the cache.
    cache.put(Odd("raises"), 1)
    with pytest.raises(ArithmeticError):
        cache.get(Odd("raises"))


def test_a_few_huge_values_cannot_eat_the_memory() -> None:
    cache = ForwardCache(maxsize=100, max_bytes=10_000)
    for n in range(20):
        cache.put(n, np.zeros(300, dtype=np.float32))
    assert cache.byte_count <= 10_000
    assert len(cache) == 10_000 // size_of(np.zeros(300, dtype=np.float32))
    assert cache.get(19) is not _MISS
    cache.put("huge", np.zeros(10_000))
    assert cache.get("huge") is _MISS
    assert cache.get(19) is not _MISS, "what does not fit pushes nothing out"
    cache.put(19, np.zeros(10_000))
    assert cache.get(19) is _MISS, "an old value does not stand for a new one"


def test_the_size_function_is_the_users() -> None:
    cache = ForwardCache(maxsize=100, max_bytes="1KiB", size_of=len)
    cache.put("a", b"x" * 1000)
    cache.put("b", b"x" * 100)
    assert (cache.get("a"), cache.byte_count, cache.max_bytes) == (_MISS, 100, 1024)
    with pytest.raises(TypeError):
        cache.put("c", 5)
    assert len(cache) == 1
    for wrong in (0, "0"):
        with pytest.raises(ValueError, match="max_bytes"):
            ForwardCache(max_bytes=wrong)


def test_size_of_counts_what_is_inside() -> None:
    array = np.zeros(1000)
    assert size_of(array) >= 8000
    assert size_of([array, array]) < 2 * size_of(array)
    assert size_of({"a": [array], "b": (b"x" * 5000,)}) > 13_000
    loop: list[Any] = []
    loop.append(loop)
    assert size_of(loop) > 0


def test_values_are_let_go() -> None:
    class Value:
        pass

    cache = ForwardCache(maxsize=1)
    value = Value()
    gone = weakref.ref(value)
    before = sys.getrefcount(value)
    cache.put("a", value)
    assert cache.get("a") is value
    cache.put("b", 1)
    assert sys.getrefcount(value) == before
    cache.put("a", value)
    value.cache = cache  # type: ignore[attr-defined]  # A circle through the cache.
    del value, cache
    gc.collect()
    assert gone() is None


def test_many_threads_and_one_cache() -> None:
    cache = ForwardCache(maxsize=50)

    def work(seed: int) -> int:
        chance, found = random.Random(seed), 0
        for _ in range(10_000):
            number = chance.randrange(100)
            value = cache.get((seed % 2, number))
            if value is _MISS:
                cache.put((seed % 2, number), number)
            else:
                assert value == number
                found += 1
        return found

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) > 0
    assert len(cache) == 50
