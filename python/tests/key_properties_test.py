"""Two keys are equal exactly if kind, names, types and values are; and a key gives back what went in."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from lmemo import Key, LongValue

KINDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", min_size=1, max_size=64)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=400)
NAMES = st.text(st.characters(exclude_categories=(), exclude_characters="\0"), min_size=1, max_size=16)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    TEXTS,
    st.binary(max_size=400),
    st.sampled_from([0, 1, 0.0, -0.0, 1.0, "", "0", "1", b"", b"0", b"1", "t" * 256, "t" * 257, b"t" * 257]),
)
FIELDS = st.dictionaries(NAMES, VALUES, max_size=8)


def identity(value: Any) -> object:
    """What two values must share to be the same value."""
    if isinstance(value, float):
        return "float", "nan" if value != value else struct.pack("<d", value)
    if isinstance(value, LongValue):
        return "long", value.is_text, value.byte_count, value.sha256
    if isinstance(value, (str, bytes)):
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        if len(data) > 256:
            return "long", isinstance(value, str), len(data), hashlib.sha256(data).digest()
    return type(value).__name__, value


def identities(fields: dict[str, Any]) -> dict[str, object]:
    return {name: identity(value) for name, value in fields.items()}


@given(KINDS, FIELDS)
def test_a_key_gives_back_what_went_in(kind: str, fields: dict[str, Any]) -> None:
    key = Key.of(kind, fields)
    assert key.kind == kind
    assert identities(key.fields) == identities(fields)
    assert list(key.fields) == sorted(fields, key=lambda name: name.encode("utf-8", "surrogatepass"))
    again = Key.of(key.kind, key.fields)
    assert again.encoding == key.encoding
    assert Key.from_encoding(key.encoding).digest == key.digest
    assert key.digest == hashlib.sha256(b"lmemo key 1\n" + key.encoding).digest()


@given(KINDS, FIELDS, st.randoms())
def test_the_order_of_fields_does_not_matter(kind: str, fields: dict[str, Any], random: Any) -> None:
    items = list(fields.items())
    random.shuffle(items)
    assert Key.of(kind, dict(items)) == Key.of(kind, fields)


@given(st.data())
def test_keys_are_equal_exactly_if_all_parts_are(data: st.DataObject) -> None:
    kinds, values = st.sampled_from(["k", "l"]), st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)
    kind, fields = data.draw(kinds), data.draw(values)
    other_kind = data.draw(kinds)
    other_fields = data.draw(st.one_of(values, st.just(fields)))
    are_equal = kind == other_kind and identities(fields) == identities(other_fields)
    assert (Key.of(kind, fields) == Key.of(other_kind, other_fields)) is are_equal
    if are_equal:
        assert hash(Key.of(kind, fields)) == hash(Key.of(other_kind, other_fields))


@given(st.binary(max_size=80))
@example(b"\x01k\x00\x00")
def test_any_bytes_are_a_key_or_refused(data: bytes) -> None:
    try:
        key = Key.from_encoding(data)
    except Exception as error:
        assert type(error).__name__ == "Corruption"
    else:
        assert key.encoding == data
