"""What Store and MemoryStore promise alike. Every test runs with both."""

from __future__ import annotations

import datetime
import json
from array import array
from typing import Any

import numpy as np
import pytest

import lmemo
from lmemo import Key


def key(n: object, kind: str = "test") -> Key:
    return Key.of(kind, n=n)  # type: ignore[arg-type]


def test_what_was_put_is_found(store: lmemo.StoreBase) -> None:
    assert store.find(key(1)) is None
    assert store.put(key(1), b"one") is True
    hit = store.find(key(1))
    assert hit is not None
    assert bytes(hit) == b"one"
    assert len(hit) == 3
    assert store.find(key(2)) is None


def test_a_later_put_wins(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"old")
    old = store.find(key(1))
    store.put(key(1), b"newer")
    assert store.find(key(1)) == b"newer"
    assert old == b"old"
    assert store.stats().entries == 1


def test_an_empty_value_is_a_value(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"")
    hit = store.find(key(1))
    assert hit, "an empty value is a hit as well"
    assert len(hit) == 0 and bytes(hit) == b""


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("size", [1, 255, 4096, 65537, 3_000_000])
def test_values_of_every_size(store: lmemo.StoreBase, size: int, flush: bool) -> None:
    value = np.random.default_rng(size).bytes(size)
    store.put(key(size), value)
    if flush:
        store.flush()
    assert store.find(key(size)) == value


@pytest.mark.parametrize(
    "value",
    [
        b"abcdefgh",
        bytearray(b"abcdefgh"),
        memoryview(b"abcdefgh"),
        memoryview(b"..abcdefgh..")[2:-2],
        array("H", [25185, 25699, 26213, 26727]),
        np.frombuffer(b"abcdefgh", dtype=np.int32),
        np.frombuffer(b"abcdefgh", dtype=np.uint8).reshape(2, 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_bytes_like_object_can_be_put(store: lmemo.StoreBase, value: Any) -> None:
    assert store.put(key(1), value)
    assert store.find(key(1)) == b"abcdefgh"


def test_a_hit_can_be_put(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"value")
    hit = store.find(key(1))
    assert hit is not None
    store.put(key(2), hit)
    assert store.find(key(2)) == b"value"


@pytest.mark.parametrize("value", ["text", 1, None, [1], np.arange(10)[::2]], ids=lambda v: type(v).__name__)
def test_what_is_not_bytes_is_refused(store: lmemo.StoreBase, value: Any) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        store.put(key(1), value)
    assert store.find(key(1)) is None


def test_what_is_no_key_is_refused(store: Any) -> None:
    for method in (store.find, store.contains, store.erase, store.explain):
        for wrong in ("tokens", b"k", None, 1):
            with pytest.raises(TypeError):
                method(wrong)
    with pytest.raises(TypeError):
        store.put("tokens", b"value")
    with pytest.raises(TypeError):
        store.find_many([key(1), "tokens"])


def test_many_at_once(store: lmemo.StoreBase) -> None:
    assert store.put_many((key(n), b"%d" % n) for n in range(5000))
    assert store.put_many({key("a"): b"a", key("b"): bytearray(b"b")})
    assert store.put_many([])
    found = store.find_many([*(key(n) for n in range(5000)), key("a"), key("missing"), key("b")])
    assert [None if hit is None else bytes(hit) for hit in found] == [
        *(b"%d" % n for n in range(5000)),
        b"a",
        None,
        b"b",
    ]
    assert store.find_many([]) == []


def test_put_many_takes_nothing_but_pairs(store: Any) -> None:
    with pytest.raises(ValueError):
        store.put_many([(key(1), b"a", b"b")])
    with pytest.raises(TypeError):
        store.put_many([(key(1), "text")])
    with pytest.raises(TypeError):
        store.put_many([("key", b"a")])
    with pytest.raises(TypeError):
        store.put_many(3)


def test_contains(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"one")
    assert store.contains(key(1)) and key(1) in store
    assert not store.contains(key(2)) and key(2) not in store


def test_erase(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"one")
    hit = store.find(key(1))
    assert store.erase(key(1)) is True
    assert store.erase(key(1)) is False
    assert store.find(key(1)) is None and key(1) not in store
    assert hit == b"one"
    store.put(key(1), b"again")
    assert store.find(key(1)) == b"again"


def test_kinds_are_namespaces(store: lmemo.StoreBase) -> None:
    store.put(key(1, "tokens"), b"tokens")
    store.put(key(1, "forward"), b"forward")
    assert store.find(key(1, "tokens")) == b"tokens"
    assert store.find(key(1, "forward")) == b"forward"
    assert store.clear("tokens").entries == 1
    assert store.find(key(1, "tokens")) is None
    assert store.find(key(1, "forward")) == b"forward"
    assert store.clear().entries == 1
    assert store.stats().entries == 0


def filled(store: lmemo.StoreBase) -> lmemo.StoreBase:
    for layer in range(4):
        for model in ("gpt2", "llama"):
            store.put(Key.of("activation", layer=layer, model=model), bytes(layer))
    store.put(Key.of("tokens", model="gpt2"), b"tokens")
    return store


def test_scan_by_kind_and_field(store: lmemo.StoreBase) -> None:
    filled(store)
    assert len(store.scan()) == 9
    assert len(store.scan("activation")) == len(store.scan(kind="activation")) == 8
    assert len(store.scan(model="gpt2")) == 5
    assert len(store.scan("activation", {"model": "gpt2"}, layer=3)) == 1
    assert store.scan("activation", layer=3.0) == store.scan("nothing") == store.scan(layer=None) == []
    (entry,) = store.scan("activation", layer=3, model="llama")
    assert entry.key == Key.of("activation", layer=3, model="llama")
    assert entry.digest == entry.key.digest
    assert entry.kind == "activation"
    assert entry.value_bytes == 3
    assert entry.stored_bytes > 3
    age = datetime.datetime.now(datetime.timezone.utc) - entry.written
    assert datetime.timedelta(seconds=-1) < age < datetime.timedelta(minutes=5)
    json.dumps(entry.to_dict())


def test_erase_matching(store: lmemo.StoreBase) -> None:
    filled(store)
    assert store.erase_matching("activation", layer=2).entries == 2
    assert store.erase_matching(model="gpt2").entries == 4
    assert sorted(entry.kind for entry in store.scan()) == ["activation"] * 3
    assert store.erase_matching("nothing").entries == 0
    with pytest.raises(lmemo.InvalidArgument, match="clear"):
        store.erase_matching()


def test_filters_are_checked(store: Any) -> None:
    for method in (store.scan, store.erase_matching):
        with pytest.raises(TypeError):
            method(kind=3)
        with pytest.raises(ValueError):
            method("")
        with pytest.raises(TypeError):
            method("k", 3)
        with pytest.raises(TypeError):
            method("k", layer=[1])


def test_explain_names_the_differing_field(store: lmemo.StoreBase) -> None:
    stored = Key.of("tokens", section="s", tokenizer="a1b2", n=1)
    store.put(stored, b"x")
    assert store.explain(stored).is_hit
    miss = store.explain(Key.of("tokens", section="s", tokenizer="c3d4", n=1))
    assert not miss.is_hit
    assert miss.candidates == 1
    assert miss.nearest == stored
    assert miss.nearest_written is not None
    (difference,) = miss.differing
    assert (difference.name, difference.asked, difference.stored) == ("tokenizer", "c3d4", "a1b2")
    assert difference.in_request and difference.in_entry
    assert "tokenizer" in str(miss) and "a1b2" in str(miss) and "c3d4" in str(miss)
    json.dumps(miss.to_dict())


def test_explain_tells_absent_from_none(store: lmemo.StoreBase) -> None:
    store.put(Key.of("tokens", section="s", adapter=None), b"x")
    by_name = {
        difference.name: difference
        for difference in store.explain(Key.of("tokens", section="s", n=1)).differing
    }
    assert not by_name["adapter"].in_request and by_name["adapter"].in_entry
    assert by_name["n"].in_request and not by_name["n"].in_entry
    nothing = store.explain(Key.of("forward"))
    assert nothing.nearest is None and nothing.candidates == 0 and nothing.differing == []


def test_stats_count(store: lmemo.StoreBase) -> None:
    filled(store)
    for n in range(3):
        store.find(Key.of("tokens", model="gpt2"))
        store.find(key(n))
    store.erase(Key.of("tokens", model="gpt2"))
    stats = store.stats()
    assert (stats.hits, stats.misses, stats.puts, stats.erased) == (3, 3, 9, 1)
    assert (stats.failed_puts, stats.damaged_records, stats.evicted) == (0, 0, 0)
    assert stats.entries == 8
    assert stats.kinds["activation"].entries == 8
    assert stats.kinds["activation"].value_bytes == 2 * (0 + 1 + 2 + 3)
    assert stats.counters["tokens"].hits == 3
    assert stats.counters["activation"].puts == 8
    assert stats.oldest is not None and stats.newest is not None and stats.oldest <= stats.newest
    assert "entries=8" in repr(stats)
    assert json.loads(json.dumps(stats.to_dict()))["kinds"]["activation"]["entries"] == 8


def test_upkeep_of_a_sound_store_changes_nothing(store: lmemo.StoreBase) -> None:
    filled(store)
    store.flush()
    before = {entry.digest: entry.value_bytes for entry in store.scan()}
    assert store.verify().is_clean
    assert store.repair().lost_records == 0
    assert store.compact().entries == 0
    assert store.prune(3600).entries == 0
    assert store.prune("30d").entries == 0
    assert store.prune(datetime.timedelta(days=1), "tokens").entries == 0
    assert store.evict("1GiB").entries == 0
    assert {entry.digest: entry.value_bytes for entry in store.scan()} == before
    assert all(store.find_many(entry.key for entry in store.scan() if entry.key))


def test_prune_removes(store: lmemo.StoreBase) -> None:
    filled(store)
    store.flush()
    assert store.prune(0, "tokens").entries == 1
    assert store.stats().entries == 8
    assert store.prune(datetime.timedelta(0)).entries == 8
    assert store.stats().entries == 0


def test_wrong_sizes_and_ages_are_refused(store: Any) -> None:
    for error, call in [
        (TypeError, lambda: store.prune(None)),
        (TypeError, lambda: store.prune(b"30d")),
        (ValueError, lambda: store.prune(-1)),
        (ValueError, lambda: store.prune(float("nan"))),
        (ValueError, lambda: store.prune("soon")),
        (TypeError, lambda: store.evict(1.5)),
        (ValueError, lambda: store.evict(-1)),
        (ValueError, lambda: store.evict("2G")),
        (TypeError, lambda: store.verify(progress=3)),
    ]:
        with pytest.raises(error):
            call()


def test_progress_is_told_and_may_raise(store: lmemo.StoreBase) -> None:
    filled(store)
    store.flush()
    told: list[lmemo.Progress] = []
    store.verify(progress=told.append)
    for progress in told:
        assert progress.phase and progress.unit and progress.done >= 0
    if told:
        with pytest.raises(ZeroDivisionError):
            store.verify(progress=lambda progress: 1 // 0)
    assert store.verify().is_clean


def test_after_close_calls_raise_and_hits_live(store: lmemo.StoreBase) -> None:
    store.put(key(1), b"one")
    hit = store.find(key(1))
    assert not store.is_closed
    store.close()
    store.close()
    assert store.is_closed and "closed" in repr(store)
    assert hit == b"one"
    calls: list[Any] = [
        lambda: store.find(key(1)), lambda: store.contains(key(1)), lambda: key(1) in store,
        lambda: store.find_many([]), lambda: store.put(key(1), b""), lambda: store.put_many([]), store.flush,
        lambda: store.erase(key(1)), lambda: store.erase_matching("k"), store.scan,
        lambda: store.explain(key(1)), store.stats, store.verify, store.repair, lambda: store.prune(0),
        lambda: store.evict(0), store.compact, store.clear,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(lmemo.InvalidArgument, match="closed"):
            call()


def test_a_with_block_closes_also_after_an_error(store: lmemo.StoreBase) -> None:
    with pytest.raises(ZeroDivisionError), store as inside:
        assert inside is store
        1 // 0
    assert store.is_closed
