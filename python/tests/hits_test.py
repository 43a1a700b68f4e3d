"""lmemo.Hit: a view without a copy that outlives everything it came from."""

from __future__ import annotations

import datetime
import gc
import shutil
from pathlib import Path

import numpy as np
import pytest

import lmemo

KEY = lmemo.Key.of("test", n=1)


def found(store: lmemo.StoreBase, value: bytes = b"abcdefgh") -> lmemo.Hit:
    store.put(KEY, value)
    hit = store.find(KEY)
    assert hit is not None
    return hit


def address_of(array: np.ndarray) -> int:  # type: ignore[type-arg]
    address: int = array.__array_interface__["data"][0]
    return address


def test_views_share_the_memory_of_the_store(store: lmemo.StoreBase) -> None:
    hit = found(store)
    one = np.frombuffer(hit, dtype=np.uint8)
    other = np.frombuffer(memoryview(hit)[4:], dtype=np.int32)
    assert address_of(other) == address_of(one) + 4
    again = store.find(KEY)
    assert again is not None
    assert address_of(np.frombuffer(again, dtype=np.uint8)) == address_of(one)


def test_views_are_read_only(store: lmemo.StoreBase) -> None:
    hit = found(store)
    array = np.frombuffer(hit, dtype=np.uint8)
    assert not array.flags.writeable
    with pytest.raises(ValueError):
        array[0] = 1
    view = memoryview(hit)
    assert view.readonly and view.contiguous and view.format == "B" and view.nbytes == 8
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(ValueError):
        array.setflags(write=True)


def test_a_hit_equals_what_has_the_same_bytes(store: lmemo.StoreBase) -> None:
    hit = found(store)
    for same in (b"abcdefgh", bytearray(b"abcdefgh"), memoryview(b"abcdefgh"), store.find(KEY)):
        assert hit == same
    for different in (b"abcdefg", b"abcdefgx", b"", "abcdefgh", None, 3):
        assert hit != different
    with pytest.raises(TypeError):
        hash(hit)


def test_a_hit_knows_when_it_was_written(store: lmemo.StoreBase) -> None:
    before = datetime.datetime.now(datetime.timezone.utc)
    hit = found(store)
    assert hit.written.tzinfo is datetime.timezone.utc
    assert (
        before - datetime.timedelta(seconds=1) <= hit.written <= datetime.datetime.now(datetime.timezone.utc)
    )
    assert hit.written_ns // 1000 == round(hit.written.timestamp() * 1_000_000)
    later = found(store)
    assert later.written_ns > hit.written_ns
    assert "8 bytes" in repr(hit)


@pytest.mark.parametrize("is_published", [False, True])
def test_a_hit_outlives_its_store_and_its_file(directory: Path, is_published: bool) -> None:
    value = np.random.default_rng(1).bytes(100_000)
    store = lmemo.Store(directory)
    store.put(KEY, value)
    if is_published:
        store.flush()
    hit = store.find(KEY)
    assert hit is not None
    array = np.frombuffer(hit, dtype=np.uint8)
    store.erase(KEY)
    store.compact()
    store.clear()
    assert hit == value
    store.close()
    del store, hit
    gc.collect()
    shutil.rmtree(directory)
    assert array.tobytes() == value


def test_a_hit_outlives_its_memory_store() -> None:
    store = lmemo.MemoryStore(max_bytes=10_000)
    hit = found(store)
    for n in range(100):
        store.put(lmemo.Key.of("test", n=n), bytes(1000))
    assert store.stats().evicted > 0
    del store
    gc.collect()
    assert hit == b"abcdefgh"


def test_many_hits_at_once(store: lmemo.StoreBase) -> None:
    """More than the pool of Hit objects holds, freed in another order."""
    keys = [lmemo.Key.of("test", n=n) for n in range(2000)]
    store.put_many((key, key.digest) for key in keys)
    hits = store.find_many(keys)
    del hits[::3]
    kept = [key for number, key in enumerate(keys) if number % 3]
    for key, hit in zip(kept, hits):
        assert hit == key.digest
