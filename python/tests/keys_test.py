"""lmemo.Key: golden vectors, what can be a value, what is refused and how."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import struct
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmemo
from lmemo import Key

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "tests/golden/keys.json").read_text())


def python_value(field: dict[str, str]) -> lmemo.FieldValue:
    """The value of a golden field, as tests/golden/make_keys.py describes it."""
    value = field["value"]
    match field["type"]:
        case "none":
            return None
        case "bool":
            return value == "true"
        case "int":
            return int(value)
        case "float":
            number: float = struct.unpack(">d", bytes.fromhex(value))[0]
            return number
        case "text":
            return bytes.fromhex(value).decode("utf-8", "surrogatepass")
        case "blob":
            return bytes.fromhex(value)
    raise AssertionError(field)


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda vector: vector["note"])
def test_golden_vectors(vector: dict[str, Any]) -> None:
    key = Key.of(vector["kind"], {field["name"]: python_value(field) for field in vector["fields"]})
    assert key.encoding.hex() == vector["encoding"]
    assert key.hex == vector["digest"] == key.digest.hex()
    assert key.kind == vector["kind"]
    again = Key.from_encoding(bytes.fromhex(vector["encoding"]))
    assert again == key
    assert again.digest == key.digest
    assert Key.of(again.kind, again.fields) == key


@pytest.mark.parametrize("entry", GOLDEN["refused"], ids=lambda entry: entry["note"])
def test_what_is_no_encoding_is_refused(entry: dict[str, str]) -> None:
    with pytest.raises(lmemo.Corruption):
        Key.from_encoding(bytes.fromhex(entry["encoding"]))


def test_a_field_may_have_any_name() -> None:
    by_name = Key.of("k", kind="a", fields="b", self="c", named="d", encoding="e")
    assert by_name == Key.of("k", {"kind": "a", "fields": "b", "self": "c", "named": "d", "encoding": "e"})
    assert Key.of("k", {"odd name": 1}, n=2).fields == {"n": 2, "odd name": 1}


def test_types_are_part_of_the_identity() -> None:
    values = [None, False, True, 0, 1, 0.0, -0.0, 1.0, "", "1", "None", b"", b"1"]
    assert len({Key.of("k", x=value) for value in values}) == len(values)


def test_numpy_scalars_count_by_their_type() -> None:
    assert Key.of("k", x=np.bool_(True)) == Key.of("k", x=True)
    for integer in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        assert Key.of("k", x=integer(7)) == Key.of("k", x=7)
    for real in (np.float16, np.float32, np.float64):
        assert Key.of("k", x=real(0.5)) == Key.of("k", x=0.5)
    assert Key.of("k", x=np.float32(0.1)) != Key.of("k", x=0.1)
    assert Key.of("k", x=np.str_("a")) == Key.of("k", x="a")
    assert Key.of("k", x=np.bytes_(b"a")) == Key.of("k", x=b"a")


def test_subclasses_count_as_their_base() -> None:
    class Layer(IntEnum):
        LAST = 3

    assert Key.of("k", x=Layer.LAST) == Key.of("k", x=3)
    assert Key.of("k", x=bytearray(b"ab")) == Key.of("k", x=b"ab")


@pytest.mark.parametrize(
    "value",
    [
        [1], (1,), {"a": 1}, {1}, object(), 1j, range(3), memoryview(b"a"), np.array(1), np.array([1, 2]),
        np.datetime64("2025-01-01"), np.timedelta64(1, "ns"), np.complex64(1), np.longdouble(1), Key.of("k"),
        int,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_other_types_are_refused_by_name(value: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"field 'layer': .*{type(value).__name__}.* expected None, bool, int"
    ):
        Key.of("k", layer=value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, np.uint64(2**63)])
def test_an_int_beyond_64_bits_is_refused_by_name(value: int) -> None:
    with pytest.raises(ValueError, match=r"field 'layer': .*64 bits"):
        Key.of("k", layer=value)


@pytest.mark.parametrize("kind", ["", "Tokens", "a b", "a/b", "..\x00", "k" * 65, "é", "\ud800"])
def test_a_kind_that_is_none_is_refused(kind: str) -> None:
    with pytest.raises(lmemo.InvalidArgument, match="kind"):
        Key.of(kind)


def test_names_and_their_number_are_limited() -> None:
    Key.of("k", {"n" * 64: 1})
    for name in ("", "n" * 65, "é" * 33, "a\0b"):
        with pytest.raises(lmemo.InvalidArgument, match="name"):
            Key.of("k", {name: 1})
    Key.of("k", {f"f{i}": i for i in range(64)})
    with pytest.raises(lmemo.InvalidArgument, match="64"):
        Key.of("k", {f"f{i}": i for i in range(65)})
    with pytest.raises(lmemo.InvalidArgument, match="twice"):
        Key.of("k", {"n": 1}, n=2)


def test_misuse_is_a_type_error() -> None:
    make: Any = Key.of
    for arguments in [(), (1,), (None,), ("k", 1), ("k", [("n", 1)]), ("k", {1: 1}), ("k", {}, {})]:
        with pytest.raises(TypeError):
            make(*arguments)
    with pytest.raises(TypeError):
        Key.from_encoding("text")  # type: ignore[arg-type]


def test_long_texts_and_blobs_keep_length_and_digest() -> None:
    text, blob = "é" * 200, b"b" * 300
    fields = Key.of("k", text=text, blob=blob).fields
    assert fields["text"] == lmemo.LongValue(True, 400, hashlib.sha256(text.encode()).digest())
    assert fields["blob"] == lmemo.LongValue(False, 300, hashlib.sha256(blob).digest())
    assert Key.of("k", fields) == Key.of("k", text=text, blob=blob)
    assert Key.of("k", text=text) != Key.of("k", text=text + "é")
    for byte_count, sha256 in [(256, bytes(32)), (300, bytes(31))]:
        with pytest.raises(ValueError):
            lmemo.LongValue(True, byte_count, sha256)


def test_keys_are_values() -> None:
    key = Key.of("tokens", section="s" * 300, n=1, x=0.5, blob=b"\0", none=None)
    assert pickle.loads(pickle.dumps(key)) == key
    assert copy.deepcopy(key) == key
    assert {key: 1}[Key.from_encoding(key.encoding)] == 1
    assert key != Key.of("tokens")
    assert key != key.digest
    assert eval(repr(key), {"Key": Key, "LongValue": lmemo.LongValue}) == key
    assert repr(Key.of("k", {"odd name": 1})) == "Key.of('k', {'odd name': 1})"
    with pytest.raises(AttributeError):
        key.kind = "other"  # type: ignore[misc]


def test_the_same_key_in_every_process() -> None:
    program = "import lmemo; k = lmemo.Key.of('k', {'b': 1, 'a': 'x'}, c=b'y'); print(k.hex, hash(k))"
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_text_of_other_languages_that_is_not_utf8_is_shown() -> None:
    encoding = b"\x01k\x01\x00" + b"\x01x\x04" + struct.pack("<I", 2) + b"a\xff"
    assert Key.from_encoding(encoding).fields == {"x": "a\\xff"}
