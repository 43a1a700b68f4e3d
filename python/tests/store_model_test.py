"""Random puts, erasures, flushes and upkeep against a dict: both stores must agree with it at every step."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import lmemo

KINDS = st.sampled_from(["tokens", "forward"])
KEYS = st.builds(lambda kind, n: lmemo.Key.of(kind, n=n), KINDS, st.integers(0, 9))
VALUES = st.one_of(st.binary(max_size=64), st.integers(0, 255).map(lambda byte: bytes([byte]) * 5000))


class StoreAgainstDict(RuleBasedStateMachine):
    store: lmemo.StoreBase

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[lmemo.Key, bytes] = {}
        self.hits: list[tuple[lmemo.Hit, bytes]] = []

    @rule(key=KEYS, value=VALUES)
    def put(self, key: lmemo.Key, value: bytes) -> None:
        assert self.store.put(key, value)
        self.model[key] = value

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), max_size=5))
    def put_many(self, pairs: list[tuple[lmemo.Key, bytes]]) -> None:
        assert self.store.put_many(pairs)
        self.model.update(pairs)

    @rule(key=KEYS)
    def find(self, key: lmemo.Key) -> None:
        hit = self.store.find(key)
        assert (None if hit is None else bytes(hit)) == self.model.get(key)
        if hit is not None:
            self.hits.append((hit, bytes(hit)))

    @rule(key=KEYS)
    def erase(self, key: lmemo.Key) -> None:
        assert self.store.erase(key) is (self.model.pop(key, None) is not None)

    @rule(kind=KINDS, n=st.integers(0, 9))
    def erase_matching(self, kind: str, n: int) -> None:
        assert self.store.erase_matching(kind, n=n).entries == (
            self.model.pop(lmemo.Key.of(kind, n=n), None) is not None
        )

    @rule(kind=KINDS, is_prune=st.booleans())
    def clear(self, kind: str, is_prune: bool) -> None:
        gone = [key for key in self.model if key.kind == kind]
        report = self.store.prune(0, kind) if is_prune else self.store.clear(kind)
        assert report.entries == len(gone)
        for key in gone:
            del self.model[key]

    @rule(call=st.sampled_from(["flush", "compact", "repair", "verify"]))
    def look_after(self, call: str) -> None:
        getattr(self.store, call)()

    @invariant()
    def same_entries(self) -> None:
        assert {entry.key: entry.value_bytes for entry in self.store.scan()} == {
            key: len(value) for key, value in self.model.items()
        }
        assert self.store.stats().entries == len(self.model)

    @invariant()
    def hits_never_change(self) -> None:
        for hit, value in self.hits[-10:]:
            assert bytes(hit) == value

    def teardown(self) -> None:
        for key, value in self.model.items():
            assert self.store.find(key) == value
        self.store.close()


class MemoryAgainstDict(StoreAgainstDict):
    def __init__(self) -> None:
        super().__init__()
        self.store = lmemo.MemoryStore()


class DiskAgainstDict(StoreAgainstDict):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.open()

    def open(self, **options: Any) -> None:
        self.store = lmemo.Store(self.directory.name, segment_bytes=4096, refresh_seconds=0, **options)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule()
    def evict_all(self) -> None:
        """By an object that has touched nothing: what this run has touched is protected."""
        self.reopen()
        assert self.store.evict(0).entries == len(self.model)
        self.model.clear()

    @rule(key=KEYS, value=VALUES)
    def put_elsewhere(self, key: lmemo.Key, value: bytes) -> None:
        """Another Store object on the same directory; each sees what the other has published."""
        self.store.flush()
        with lmemo.Store(self.directory.name) as other:
            assert {entry.key for entry in other.scan()} == set(self.model)
            other.put(key, value)
        self.model[key] = value
        assert self.store.find(lmemo.Key.of("nothing")) is None  # A miss looks again.

    @precondition(lambda self: self.model)
    @rule()
    def read_only(self) -> None:
        self.store.flush()
        with lmemo.Store(self.directory.name, read_only=True) as other:
            for key, value in self.model.items():
                assert other.find(key) == value

    def teardown(self) -> None:
        super().teardown()
        self.directory.cleanup()


TestMemoryStore = MemoryAgainstDict.TestCase
TestMemoryStore.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestDiskStore = DiskAgainstDict.TestCase
TestDiskStore.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
