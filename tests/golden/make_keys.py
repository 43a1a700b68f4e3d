"""Writes keys.json: keys with their encodings and digests, and encodings that every reader must refuse.

Independent of the C++ code on purpose: this is docs/format.md ("Keys") said again in Python and hashlib, so that the
two can disagree. Run it only to add vectors; a change of an existing one is a change of every identity.

    python tests/golden/make_keys.py

A vector is {"note", "kind", "fields", "encoding", "digest"}; encoding and digest are hex. A field is {"name", "type",
"value"}, and the value is a string that depends on the type:

    none   ""                        float  the 64 bits of the given number as 16 hex digits, highest first
    bool   "true" or "false"         text   hex of its UTF-8 bytes; lone surrogates as three bytes
    int    decimal                   blob   hex
"""

import hashlib
import json
import pathlib
import struct
from typing import NamedTuple

TYPES = {"none": 0, "bool": 1, "int": 2, "float": 3, "text": 4, "blob": 5}
LONG_TEXT, LONG_BLOB = 6, 7


class Field(NamedTuple):
    name: str
    type: str
    value: str


def none(name: str) -> Field:
    return Field(name, "none", "")


def boolean(name: str, value: bool) -> Field:
    return Field(name, "bool", "true" if value else "false")


def integer(name: str, value: int) -> Field:
    return Field(name, "int", str(value))


def real(name: str, value: float) -> Field:
    return Field(name, "float", struct.pack(">d", value).hex())


def bits(name: str, value: int) -> Field:
    return Field(name, "float", f"{value:016x}")


def text(name: str, value: str) -> Field:
    return Field(name, "text", value.encode("utf-8", "surrogatepass").hex())


def blob(name: str, value: bytes) -> Field:
    return Field(name, "blob", value.hex())


def encode_value(type_name: str, value: str) -> tuple[int, bytes]:
    if type_name == "none":
        return 0, b""
    if type_name == "bool":
        return 1, bytes([value == "true"])
    if type_name == "int":
        return 2, struct.pack("<q", int(value))
    if type_name == "float":
        pattern = int(value, 16)
        is_nan = pattern & 0x7FF0000000000000 == 0x7FF0000000000000 and pattern & 0x000FFFFFFFFFFFFF != 0
        return 3, struct.pack("<Q", 0x7FF8000000000000 if is_nan else pattern)
    raw = bytes.fromhex(value)
    if len(raw) > 256:
        long_type = LONG_TEXT if type_name == "text" else LONG_BLOB
        return long_type, struct.pack("<Q", len(raw)) + hashlib.sha256(raw).digest()
    return TYPES[type_name], raw


def field_bytes(name: bytes, type_number: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([type_number]) + struct.pack("<I", len(value)) + value


def key_bytes(kind: bytes, fields: list[bytes]) -> bytes:
    return bytes([len(kind)]) + kind + struct.pack("<H", len(fields)) + b"".join(fields)


def vector(note: str, kind: str, *fields: Field) -> dict[str, object]:
    in_order = sorted(fields, key=lambda field: field.name.encode())
    encoding = key_bytes(
        kind.encode(), [field_bytes(field.name.encode(), *encode_value(field.type, field.value)) for field in in_order]
    )
    return {
        "note": note,
        "kind": kind,
        "fields": [field._asdict() for field in fields],
        "encoding": encoding.hex(),
        "digest": hashlib.sha256(b"lmemo key 1\n" + encoding).hexdigest(),
    }


VECTORS = [
    vector("no fields", "tokens"),
    vector("shortest kind", "k", integer("n", 1)),
    vector("longest kind", "a0._-" + "z" * 59, integer("n", 1)),
    vector("an ordinary key", "tokens", text("section", "def f(): pass\n"), text("tokenizer", "gpt2@a1b2")),
    vector("the same in another order", "tokens", text("tokenizer", "gpt2@a1b2"), text("section", "def f(): pass\n")),
    vector("none", "k", none("x")),
    vector("false", "k", boolean("x", False)),
    vector("true", "k", boolean("x", True)),
    vector("int 0", "k", integer("x", 0)),
    vector("int 1", "k", integer("x", 1)),
    vector("int -1", "k", integer("x", -1)),
    vector("largest int", "k", integer("x", 2**63 - 1)),
    vector("smallest int", "k", integer("x", -(2**63))),
    vector("float 0", "k", real("x", 0.0)),
    vector("float -0 is not 0", "k", real("x", -0.0)),
    vector("float 1 is not int 1", "k", real("x", 1.0)),
    vector("float 0.1", "k", real("x", 0.1)),
    vector("smallest denormal float", "k", bits("x", 1)),
    vector("infinity", "k", real("x", float("inf"))),
    vector("minus infinity", "k", real("x", float("-inf"))),
    vector("the canonical NaN", "k", bits("x", 0x7FF8000000000000)),
    vector("a NaN with sign and payload is the canonical one", "k", bits("x", 0xFFF8000000000123)),
    vector("a signalling NaN is the canonical one", "k", bits("x", 0x7FF0000000000001)),
    vector("empty text", "k", text("x", "")),
    vector("text 1 is not int 1", "k", text("x", "1")),
    vector("text with a NUL", "k", text("x", "a\0b")),
    vector("text beyond the BMP", "k", text("x", "grün 漢字 \U0001f600")),
    vector("composed and decomposed text are two texts: here composed", "k", text("x", "\u00e9")),
    vector("composed and decomposed text are two texts: here decomposed", "k", text("x", "e\u0301")),
    vector("a lone high surrogate", "k", text("x", "\ud800")),
    vector("two surrogates that are no pair in UTF-8", "k", text("x", "\ud83d\ude00")),
    vector("empty blob is not empty text", "k", blob("x", b"")),
    vector("blob of every byte", "k", blob("x", bytes(range(256)))),
    vector("text of 256 bytes is kept", "k", text("x", "t" * 256)),
    vector("text of 257 bytes is digested", "k", text("x", "t" * 257)),
    vector("text of 256 characters and 257 bytes is digested", "k", text("x", "t" * 255 + "é")),
    vector("blob of 256 bytes is kept", "k", blob("x", b"t" * 256)),
    vector("blob of 257 bytes is digested", "k", blob("x", b"t" * 257)),
    vector("shorter name first when one begins the other", "k", integer("ab", 1), integer("a", 2), integer("abc", 3)),
    vector("names in order of bytes", "k", integer("é", 1), integer("z", 2), integer("Z", 3), integer("_", 4)),
    vector("a name with spaces, quotes and newlines", "k", integer('odd "name"\n=', 1)),
    vector("longest name", "k", integer("n" * 64, 1)),
    vector("most fields", "k", *(integer(f"f{i}", i) for i in range(64))),
    vector(
        "one of each type", "activation-v2", none("adapter"), boolean("pooled", True), integer("layer", 17),
        real("scale", 0.5), text("model", "gpt2"), blob("weights", bytes(range(32))), text("prompt", "la " * 400),
        blob("pixels", b"\x00\xff" * 500),
    ),
]  # fmt: skip

INT_1 = struct.pack("<q", 1)
ONE = field_bytes(b"n", 2, INT_1)
REFUSED = [
    ("empty input", b""),
    ("kind cut off", b"\x05tok"),
    ("empty kind", key_bytes(b"", [])),
    ("kind of 65 bytes", key_bytes(b"k" * 65, [])),
    ("capital letter in the kind", key_bytes(b"Tokens", [])),
    ("slash in the kind", key_bytes(b"a/b", [])),
    ("NUL in the kind", key_bytes(b"a\0", [])),
    ("field count cut off", b"\x01k\x01"),
    ("a field less than counted", b"\x01k\x02\x00" + ONE),
    ("a byte after the last field", key_bytes(b"k", [ONE]) + b"\0"),
    ("65 fields", key_bytes(b"k", [field_bytes(b"%02d" % i, 0, b"") for i in range(65)])),
    ("the same name twice", key_bytes(b"k", [ONE, ONE])),
    ("names out of order", key_bytes(b"k", [field_bytes(b"o", 2, INT_1), ONE])),
    ("longer name before its beginning", key_bytes(b"k", [field_bytes(b"nn", 2, INT_1), ONE])),
    ("empty name", key_bytes(b"k", [field_bytes(b"", 2, INT_1)])),
    ("name of 65 bytes", key_bytes(b"k", [field_bytes(b"n" * 65, 2, INT_1)])),
    ("NUL in a name", key_bytes(b"k", [field_bytes(b"a\0b", 2, INT_1)])),
    ("unknown type 8", key_bytes(b"k", [field_bytes(b"n", 8, b"")])),
    ("none with a byte", key_bytes(b"k", [field_bytes(b"n", 0, b"\0")])),
    ("bool without a byte", key_bytes(b"k", [field_bytes(b"n", 1, b"")])),
    ("bool 2", key_bytes(b"k", [field_bytes(b"n", 1, b"\2")])),
    ("int of 4 bytes", key_bytes(b"k", [field_bytes(b"n", 2, b"\1\0\0\0")])),
    ("float of 4 bytes", key_bytes(b"k", [field_bytes(b"n", 3, b"\0\0\0\0")])),
    ("a NaN that is not canonical", key_bytes(b"k", [field_bytes(b"n", 3, struct.pack("<Q", 0xFFF8000000000000))])),
    ("text of 257 bytes kept", key_bytes(b"k", [field_bytes(b"n", 4, b"t" * 257)])),
    ("blob of 257 bytes kept", key_bytes(b"k", [field_bytes(b"n", 5, b"t" * 257)])),
    ("long text of 256 bytes", key_bytes(b"k", [field_bytes(b"n", 6, struct.pack("<Q", 256) + bytes(32))])),
    ("long blob of 256 bytes", key_bytes(b"k", [field_bytes(b"n", 7, struct.pack("<Q", 256) + bytes(32))])),
    ("long text of 39 bytes", key_bytes(b"k", [field_bytes(b"n", 6, struct.pack("<Q", 300) + bytes(31))])),
    ("value cut off", key_bytes(b"k", [ONE])[:-1]),
    ("value length that reaches past the end", key_bytes(b"k", [b"\x01n\x04\xff\xff\xff\xfft"])),
]


def main() -> None:
    refused = [{"note": note, "encoding": encoding.hex()} for note, encoding in REFUSED]
    lines = [
        '{"format": "lmemo key vectors 1",',
        '"vectors": [',
        ",\n".join(json.dumps(entry) for entry in VECTORS) + "],",
        '"refused": [',
        ",\n".join(json.dumps(entry) for entry in refused) + "]}",
    ]
    pathlib.Path(__file__).with_name("keys.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
