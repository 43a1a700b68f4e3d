"""Results that survive the process: same bits, same types, and never somebody else's."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra import numpy as some_numpy

import lmemo
from lmemo.forward import BackendInstrumentation, ModelView, RollingLogprob, TokenDist, decode_value, encode_value, register


def never() -> Any:
    raise AssertionError("this was computed before")


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    return bool(a == b)


NAN_WITH_A_MESSAGE = struct.unpack("d", struct.pack("Q", 0x7FF8DEADBEEF0001))[0]

VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**1000, -(2**1000) + 1,
    0.0, -0.0, math.nan, -math.nan, NAN_WITH_A_MESSAGE, math.inf, -math.inf, 5e-324, 0.1,
    "", "text", "\0", "\ud800", "x\udfff", "\U0001f600", b"", b"\0\xff", [], (), {}, [[]], ((),), [1, [2, (3, {"a": None})]],
    {"a": 1, 2: "b", None: [1.5], (1, "x"): b"", True: False}, {1.5: {}},
    np.array([]), np.zeros((0, 3), np.int64), np.zeros((2, 0, 5), bool), np.array(5), np.array(math.nan, np.float32),
    np.arange(24, dtype=np.int64).reshape(2, 3, 4), np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.arange(100)[::-7],
    np.array([[1 + 2j]], np.complex64), np.array([True, False]), np.array([-1, 300], np.int16), np.array([2**64 - 1], np.uint64),
    np.array([-0.0, math.nan, math.inf], np.float32), np.array([1, math.nan], np.float16),
    np.float32(0.1), np.float64(-0.0), np.int8(-5), np.uint64(2**64 - 1), np.bool_(True), np.complex128(1j),
    TokenDist(np.array([50256, 3, 0]), np.array([-0.5, -1.5, -9.0], np.float32), 50257, -3.25),
    RollingLogprob(np.array([1, 2], np.int32), np.array([-0.25]), 2, -0.25),
    [TokenDist(np.zeros(0, np.int32), np.zeros(0, np.float32), 1)] * 2,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_every_value_comes_back_as_what_it_was(value: Any) -> None:
    encoded = encode_value(value)
    assert encoded is not None
    assert same(value, decode_value(encoded))


@dataclasses.dataclass(frozen=True)
class Named:
    name: str


class Text(str):
    pass


Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Listed(list):  # type: ignore[type-arg]
    name: str


def with_more(value: Any) -> Any:
    object.__setattr__(value, "extra", 1)
    return value


@register
@dataclasses.dataclass
class Failure(Exception):
    reason: str


class Odd:
    """Has every attribute, and none of them is of use."""

    def __getattr__(self, name: str) -> Any:
        return None


@dataclasses.dataclass(repr=False)
class Closed:
    """Can no longer be read."""

    rows: int

    def __getattribute__(self, name: str) -> Any:
        if name == "rows":
            raise RuntimeError("closed")
        return super().__getattribute__(name)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NOT_STORED: list[Any] = [
    object(), {1, 2}, frozenset(), 1j, bytearray(b"x"), range(3), lambda: 1, int, Named, Text("text"), Pair(1, 2), OrderedDict(a=1),
    Listed("x"), [object()], {"a": {1}}, (Text(""),), np.array([object()]), np.array(["text"]), np.array([1], ">i4"), np.ma.array([1]),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), np.datetime64("2020-01-01"), np.longdouble(1), with_more(Named("x")), nested(66),
    Failure("x"), Odd(), Closed(1),
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_STORED, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))[:40])
def test_what_has_no_codec_stays_in_memory_and_is_counted(value: Any) -> None:
    assert encode_value(value) is None
    store = lmemo.MemoryStore()
    inst = BackendInstrumentation(store=store)
    assert inst.cached("op", "base", "prompt", 1, lambda: value) is value
    assert inst.cached("op", "base", "prompt", 1, never) is value
    assert (inst.stats.memory_only, inst.stats.stored, store.stats().entries) == (1, 0, 0)


def test_a_value_without_room_for_its_bytes_stays_in_memory(run_python: Callable[..., str]) -> None:
    assert run_python("""
import resource, threading
from lmemo.forward import BackendInstrumentation
inst = BackendInstrumentation(store=store)
value = bytes(200 << 20)
with open("/proc/self/statm") as file: taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (100 << 20), resource.RLIM_INFINITY))
assert inst.cached("op", "base", "prompt", 1, lambda: value) is value
asking = threading.Thread(target=lambda: print(inst.cached("op", "base", "prompt", 1, lambda: 1) is value))
asking.start()
asking.join(20)
print(inst.stats.memory_only, inst.stats.stored, inst.stats.failures)
""") == "True\n1 0 0\n"


def test_a_value_that_contains_itself_stays_in_memory() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert encode_value(loop) is None
    assert encode_value(nested(64)) is not None


plain = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(some.characters()) | some.binary(),
    lambda inner: some.lists(inner) | some.lists(inner).map(tuple) | some.dictionaries(some.text() | some.integers(), inner),
    max_leaves=20,
)
dtypes = some.sampled_from("? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()).map(np.dtype)
arrays = some_numpy.arrays(dtypes, some_numpy.array_shapes(min_dims=0, min_side=0, max_side=6))


@given(plain | arrays | some.lists(arrays))
def test_anything_comes_back(value: Any) -> None:
    encoded = encode_value(value)
    assert encoded is not None
    assert same(value, decode_value(encoded))


@given(some.binary(max_size=200), some.booleans())
@settings(max_examples=2000)
def test_any_bytes_are_a_value_or_an_error(data: bytes, has_version: bool) -> None:
    try:
        value = decode_value(b"\x01" + data if has_version else data)
    except lmemo.Error:
        return
    assert encode_value(value) is not None


@pytest.mark.parametrize("value", VALUES[-20:], ids=lambda value: repr(value)[:40])
def test_cut_and_flipped_bytes_are_an_error_or_another_value(value: Any) -> None:
    encoded = encode_value(value)
    assert encoded is not None
    for cut in range(len(encoded)):
        with pytest.raises(lmemo.Corruption):
            decode_value(encoded[:cut])
    with pytest.raises(lmemo.Corruption):
        decode_value(encoded + b"\0")
    for place in range(len(encoded)):
        for bit in range(8):
            damaged = bytearray(encoded)
            damaged[place] ^= 1 << bit
            try:
                decode_value(damaged)
            except lmemo.Error:
                pass


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_value_whose_library_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode_value(importlib.import_module(library).arange(3))
    assert encoded is not None
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(lmemo.Incompatible, match=f"{library} cannot be imported"):
        decode_value(encoded)


def test_hostile_counts_take_no_memory() -> None:
    huge = b"\xff" * 8 + b"\x7f"
    for tag in range(15):
        with pytest.raises(lmemo.Corruption):
            decode_value(bytes([1, tag]) + huge * 3)
    with pytest.raises(lmemo.Corruption):  # An array of 2^40 elements and no data.
        decode_value(bytes([1, 12, 10, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]))
    with pytest.raises(lmemo.Corruption, match="nested"):
        decode_value(b"\x01" + b"\x08\x01" * 1000 + b"\x00")
    with pytest.raises(lmemo.Incompatible, match="version 2"):
        decode_value(b"\x02\x00")


# -------------------------------------------------------------------------------------------------------- small


def test_ids_take_as_few_bytes_as_the_vocabulary_needs() -> None:
    count = 256
    for vocabulary, width in [(256, 1), (50_257, 2), (151_936, 3), (2**24 + 1, 4)]:
        ids = np.arange(vocabulary - count, vocabulary)
        dist = TokenDist(ids, np.linspace(-20, 0, count, dtype=np.float32), vocabulary, -5.0)
        encoded = encode_value(dist)
        assert encoded is not None
        overhead = len(encoded) - count * (width + 4)
        assert 0 < overhead < 130, (vocabulary, len(encoded))
        assert same(decode_value(encoded), dist)
        half = encode_value(dist, float16=True)
        assert half is not None and len(encoded) - len(half) == 2 * count


def test_half_precision_rounds_as_numpy_does() -> None:
    chance = np.random.default_rng(1)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)].astype(np.float64)
    middles = (np.sort(finite)[1:] + np.sort(finite)[:-1]) / 2
    for values in (finite, middles, middles.astype(np.float32), chance.normal(size=1000), np.array([math.nan, math.inf, -math.inf, -0.0]),
                   np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)):  # fmt: skip
        encoded = encode_value(values, float16=True)
        assert encoded is not None and len(encoded) < 2 * len(values) + 10
        decoded = decode_value(encoded)
        assert decoded.dtype == values.dtype
        np.testing.assert_array_equal(decoded, values.astype(np.float16).astype(values.dtype))
    too_large = np.array([1.0, 65520.0])
    assert same(decode_value(encode_value(too_large, float16=True) or b""), too_large), "rather exact than infinite"


# ------------------------------------------------------------------------------------------------------ in a store


def test_a_second_process_recomputes_nothing(directory: Path) -> None:
    program = """
import json, sys
import numpy as np
import lmemo
from lmemo.forward import BackendInstrumentation, ModelView, TokenDist
computed = []
def dist(n):
    computed.append(n)
    return TokenDist(np.array([n, 5]), np.array([-0.0, np.nan], np.float32), 50257)
with lmemo.Store(sys.argv[1]) as store, BackendInstrumentation(store=store, cache_maxsize=10) as inst:
    view = ModelView("base", model="gpt2")
    values = [inst.cached("dist", view, f"prompt {n}", 256, lambda: dist(n)) for n in range(50)]
    values += inst.cached_batch("dist", view, [f"prompt {n}" for n in range(40, 90)], 256, lambda missing: [dist(40 + n) for n in missing])
    values.append(inst.cached("float", "base", "\\ud800", None, lambda: computed.append(-1) or -0.0))
    bits = [v.logprobs.tobytes().hex() + str(v.token_ids.tolist()) if isinstance(v, TokenDist) else repr(v) for v in values]
    print(json.dumps([computed, inst.stats.to_dict(everything=True), bits]))
"""
    answers = []
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", program, str(directory)], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        answers.append(json.loads(ran.stdout))
    (computed, first, values), (computed_again, second, values_again) = answers
    assert computed == [*range(90), -1]
    assert computed_again == []
    assert values == values_again
    assert (first["cache_misses"], first["cache_hits"], first["stored"]) == (91, 10, 91)
    assert (second["cache_misses"], second["cache_hits"], second["forward_passes"], second["batches_sent"]) == (0, 101, 0, 0)
    # The ten that the first part left in memory are found there.
    assert second["store_hits"] == 91


def test_a_killed_process_loses_at_most_the_last_second(directory: Path) -> None:
    program = """
import sys, time, lmemo
from lmemo.forward import BackendInstrumentation
inst = BackendInstrumentation(store=lmemo.Store(sys.argv[1]))
n = 0
while True:
    inst.cached("op", "base", str(n), 1, lambda: n)
    print(n, flush=True)
    n += 1
    time.sleep(0.001)
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    process.send_signal(signal.SIGKILL)
    told = [int(line) for line in process.communicate()[0].split("\n")[:-1]]
    assert told
    with lmemo.Store(directory) as store:
        inst = BackendInstrumentation(store=store)
        for n in told:  # All of them: what was put before survives the process at once.
            assert inst.cached("op", "base", str(n), 1, never) == n


def test_processes_share_what_they_compute(directory: Path, run_python: Callable[..., str]) -> None:
    with lmemo.Store(directory) as store:
        inst = BackendInstrumentation(store=store)
        run_python("from lmemo.forward import BackendInstrumentation\n"
                   "with BackendInstrumentation(store=store) as inst: inst.cached('op', 'base', 'prompt', 1, lambda: [1, 2])")  # fmt: skip
        time.sleep(0.06)  # A miss may be 50 ms old, and a whole process can be quicker than that.
        assert inst.cached("op", "base", "prompt", 1, never) == [1, 2]


def test_two_models_two_adapters_two_dtypes_are_never_shared(store: lmemo.StoreBase) -> None:
    views = [
        ModelView("base", model="gpt2"), ModelView("base", model="gpt2-xl"), ModelView("base", model="gpt2", revision="main"),
        ModelView("base", model="gpt2", adapter="a"), ModelView("base", model="gpt2", adapter="b"),
        ModelView("base", model="gpt2", dtype="float16"), ModelView("base", model="gpt2", dtype="float32"),
        ModelView("base", model="gpt2", weights="ab12"), ModelView("ft", model="gpt2"), "base", str(ModelView("base", model="gpt2")),
    ]  # fmt: skip
    for number, view in enumerate(views[:-1]):
        BackendInstrumentation(store=store).cached("op", view, "prompt", 1, lambda: number)
    for number, view in enumerate(views[:-1]):
        assert BackendInstrumentation(store=store).cached("op", view, "prompt", 1, never) == number
    assert BackendInstrumentation(store=store).cached("op", views[-1], "prompt", 1, lambda: "a text is no model") == "a text is no model"


def test_types_of_top_k_are_told_apart_and_prompts_are_whole(store: lmemo.StoreBase) -> None:
    calls = [(top_k, prompt) for top_k in (1, 1.0, True, "1", None) for prompt in ("x" * 300, "x" * 301, "\ud800", ("x", "y"), ("xy", ""), b"x")]
    for number, (top_k, prompt) in enumerate(calls):
        BackendInstrumentation(store=store).cached("op", "base", prompt, top_k, lambda: number)
    for number, (top_k, prompt) in enumerate(calls):
        assert BackendInstrumentation(store=store).cached("op", "base", prompt, top_k, never) == number


def test_a_miss_can_be_explained(directory: Path) -> None:
    with lmemo.Store(directory) as store:
        inst = BackendInstrumentation(store=store)
        inst.cached("op", ModelView("ft", model="gpt2", adapter="runs/7"), "prompt", 1, lambda: 1)
        entry = store.scan("forward")[0]
        assert entry.key is not None
        asked = {**entry.key.fields, "adapter": "runs/8"}
        assert str(store.explain(lmemo.Key.of("forward", asked))) == 'miss: adapter changed: "runs/7" → "runs/8"'


def test_half_precision_is_another_identity_and_the_same_for_everybody(store: lmemo.StoreBase) -> None:
    exact = np.array([0.1, -12.345678], np.float32)
    rounded = exact.astype(np.float16).astype(np.float32)
    half = BackendInstrumentation(store=store, float16=True)
    assert same(half.cached("op", "base", "prompt", 1, lambda: exact), rounded)
    assert same(half.cached("op", "base", "prompt", 1, never), rounded)
    assert same(BackendInstrumentation(store=store, float16=True).cached("op", "base", "prompt", 1, never), rounded)
    assert same(BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, lambda: exact), exact)
    assert same(BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never), exact)


# ---------------------------------------------------------------------------------------------------- dataclasses


def make_point(module: str, fields: list[Any]) -> Any:
    point = dataclasses.make_dataclass("Point", fields)
    point.__module__ = module  # From Python 3.12 on, what a namespace says is overwritten.
    return point


def test_a_registered_dataclass_comes_back_and_nothing_of_it_runs(store: lmemo.StoreBase) -> None:
    ran = []

    @register
    @dataclasses.dataclass
    class Result:
        logits: Any
        tag: str = "x"
        derived: int = dataclasses.field(init=False, default=0)

        def __post_init__(self) -> None:
            ran.append(1)
            self.derived = 7

    BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, lambda: Result(np.ones(2)))
    assert len(ran) == 1
    found = BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never)
    assert type(found) is Result and found.derived == 7 and found.tag == "x" and len(ran) == 1


def test_a_dataclass_that_is_not_registered_is_a_clear_error(store: lmemo.StoreBase) -> None:
    module = type(store).__name__  # Registered is registered: each store has a class of its own.
    point = make_point(module, [("x", int)])
    BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, lambda: [point(3)])
    with pytest.raises(lmemo.Incompatible, match=rf"'{module}.Point'.*register\(Point\)"):
        BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never)
    register(point)
    assert BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never) == [point(3)]
    changed = register(make_point(module, [("x", int), ("y", int)]))  # Defined anew, as in a notebook.
    with pytest.raises(lmemo.Incompatible, match="has the fields x; the registered class has x, y"):
        BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never)
    assert register(changed, name=f"{module}.Point2") is changed
    BackendInstrumentation(store=store).cached("op", "base", "second", 1, lambda: changed(1, 2))
    assert BackendInstrumentation(store=store).cached("op", "base", "second", 1, never) == changed(1, 2)


def test_register_refuses_what_makes_no_sense() -> None:
    with pytest.raises(TypeError, match="dataclass"):
        register(int)
    with pytest.raises(ValueError, match="already"):
        register(Named, name="lmemo.forward.TokenDist")


# -------------------------------------------------------------------------------------------------------- trouble


def test_a_value_that_cannot_be_read_is_a_miss_and_is_replaced(store: lmemo.StoreBase) -> None:
    BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, lambda: 1)
    key = store.scan("forward")[0].key
    assert key is not None
    for damaged in (b"", b"\x01\x63", b"\x09\x00"):
        store.put(key, damaged)
        inst = BackendInstrumentation(store=store)
        assert inst.cached("op", "base", "prompt", 1, lambda: 2) == 2
        assert (inst.stats.unreadable, inst.stats.cache_misses) == (1, 1)
        assert BackendInstrumentation(store=store).cached("op", "base", "prompt", 1, never) == 2


def test_a_closed_or_read_only_store_costs_nothing_but_the_hits(directory: Path) -> None:
    with lmemo.Store(directory) as store:
        inst = BackendInstrumentation(store=store)
        inst.cached("op", "base", "a", 1, lambda: 1)
    assert inst.cached("op", "base", "b", 1, lambda: 2) == 2
    assert (inst.stats.stored, inst.stats.memory_only) == (1, 1)
    inst.close()
    with lmemo.Store(directory, read_only=True) as store:
        inst = BackendInstrumentation(store=store)
        assert inst.cached("op", "base", "a", 1, never) == 1
        assert inst.cached("op", "base", "b", 1, lambda: 3) == 3
        inst.close()
        assert (inst.stats.store_hits, inst.stats.memory_only) == (1, 1)


def test_a_small_store_costs_nothing_but_the_hits(tmp_path: Path) -> None:
    with lmemo.Store(tmp_path / "store", max_bytes="64KiB") as store:
        inst = BackendInstrumentation(store=store)
        for n in range(20):
            assert len(inst.cached("op", "base", str(n), 1, lambda: os.urandom(20_000))) == 20_000
        assert inst.stats.stored + inst.stats.memory_only == 20


def test_only_a_store_is_a_store() -> None:
    with pytest.raises(TypeError, match="expected a lmemo.Store or None, found str"):
        BackendInstrumentation(store="/tmp/store")  # type: ignore[arg-type]
