"""Reads lmemo segments, written from docs/format.md alone: the page is true if this reader and the C++ one agree.

    python tests/independent_reader/reader.py FILE...

It checks everything that the page says about a file, and is slow and plain on purpose. Requires xxhash (PyPI).
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import xxhash

HEADER_BYTES, RECORD_BYTES, INDEX_ENTRY_BYTES, FOOTER_BYTES = 64, 64, 64, 128
VALUE, ERASURE = 1, 2
NO_KIND = 0xFFFF


class Damaged(Exception):
    """The file is not what docs/format.md says."""


class Field(NamedTuple):
    name: bytes
    type: int
    value: bytes


class Key(NamedTuple):
    kind: str
    fields: tuple[bytes, ...]  # As encoded.


class Record(NamedTuple):
    offset: int
    byte_count: int
    type: int
    written: int
    digest: bytes
    encoding: bytes
    value: bytes


class IndexEntry(NamedTuple):
    digest: bytes
    offset: int
    written: int
    value_bytes: int
    accessed: int
    encoding_bytes: int
    kind: int


class Footer(NamedTuple):
    entry_count: int
    index_offset: int
    fields_offset: int
    kinds_offset: int
    footer_offset: int
    index_checksum: int
    fields_checksum: int
    kinds_checksum: int
    oldest: int
    newest: int


class Segment(NamedTuple):
    nonce: int
    created: int
    records: list[Record]  # All of them, in order.
    entries: list[IndexEntry]  # The index: the latest of each digest, by digest.
    kinds: list[str]


def expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise Damaged(what)


def padded(byte_count: int) -> int:
    return (byte_count + 7) // 8 * 8


def checksum(data: bytes, seed: int = 0) -> int:
    return xxhash.xxh3_64_intdigest(data, seed=seed % 2**64)


def piece(data: bytes, offset: int, byte_count: int, what: str) -> bytes:
    expect(0 <= offset and offset + byte_count <= len(data), f"{what}: ends past its container")
    return data[offset : offset + byte_count]


def as_text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Damaged(f"text that is not UTF-8: {error}") from error


def read_field(data: bytes, offset: int) -> tuple[Field, int]:
    """The field at `offset`, and where it ends."""
    name_length = piece(data, offset, 1, "field name length")[0]
    name = piece(data, offset + 1, name_length, "field name")
    type_number, value_length = struct.unpack("<BI", piece(data, offset + 1 + name_length, 5, "field"))
    start = offset + 6 + name_length
    value = piece(data, start, value_length, "field value")
    expect(1 <= name_length <= 64 and b"\0" not in name, f"field name {name!r}")
    if type_number == 1:
        expect(value in (b"\0", b"\1"), f"bool {value!r}")
    elif type_number == 3:
        expect(value_length == 8, "float")
        number = struct.unpack("<d", value)[0]
        expect(number == number or value == struct.pack("<Q", 0x7FF8000000000000), f"NaN {value.hex()}")
    elif type_number in (4, 5):
        expect(value_length <= 256, f"text or blob of {value_length} bytes")
        if type_number == 4:
            as_text(value)
    elif type_number in (6, 7):
        expect(value_length == 40 and struct.unpack_from("<Q", value)[0] > 256, "long text or blob")
    else:
        expect((type_number, value_length) in ((0, 0), (2, 8)), f"type {type_number}, {value_length} bytes")
    return Field(name, type_number, value), start + value_length


def read_key(encoding: bytes) -> Key:
    kind_length = piece(encoding, 0, 1, "kind length")[0]
    kind = as_text(piece(encoding, 1, kind_length, "kind"))
    expect(
        1 <= kind_length <= 64 and set(kind) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-"),
        f"kind {kind!r}",
    )
    (field_count,) = struct.unpack("<H", piece(encoding, 1 + kind_length, 2, "field count"))
    expect(field_count <= 64, f"{field_count} fields")
    offset, names, fields = 3 + kind_length, [], []
    for _ in range(field_count):
        field, end = read_field(encoding, offset)
        names.append(field.name)
        fields.append(encoding[offset:end])
        offset = end
    expect(offset == len(encoding), "bytes after the last field")
    expect(all(one < next_one for one, next_one in zip(names, names[1:])), "fields out of order")
    return Key(kind, tuple(fields))


def read_header(data: bytes) -> tuple[int, int]:
    """Nonce and time of creation."""
    header = piece(data, 0, HEADER_BYTES, "header")
    magic, version, reserved, nonce, created, zeros, stored = struct.unpack("<8sIIQq24sQ", header)
    expect(magic == b"LMEMOSEG", f"magic {magic!r}")
    expect(version == 1, f"version {version}")
    expect(checksum(header[:56]) == stored, "header checksum")
    expect(reserved == 0 and zeros == bytes(24), "reserved bytes of the header")
    expect(nonce != 0, "nonce 0")
    return nonce, created


def read_record(data: bytes, offset: int, nonce: int) -> Record:
    where = f"record at {offset}"
    head = piece(data, offset, RECORD_BYTES, where)
    stored, magic, encoding_bytes, type_number, reserved, value_bytes, written, digest = struct.unpack(
        "<Q4sHBBQq32s", head
    )
    expect(magic == b"LREC", f"{where}: magic {magic!r}")
    expect(value_bytes <= 2**40, f"{where}: {value_bytes} bytes of value")
    byte_count = RECORD_BYTES + padded(encoding_bytes) + padded(value_bytes)
    whole = piece(data, offset, byte_count, where)
    expect(checksum(whole[8:], nonce + offset) == stored, f"{where}: checksum")
    expect(reserved == 0 and type_number in (VALUE, ERASURE), f"{where}: type {type_number}")
    encoding = whole[RECORD_BYTES : RECORD_BYTES + encoding_bytes]
    value_start = RECORD_BYTES + padded(encoding_bytes)
    value = whole[value_start : value_start + value_bytes]
    padding = whole[RECORD_BYTES + encoding_bytes : value_start] + whole[value_start + value_bytes :]
    expect(not any(padding), f"{where}: padding")
    if type_number == ERASURE:
        expect(not encoding and not value, f"{where}: an erasure with bytes")
    else:
        read_key(encoding)
        expect(hashlib.sha256(b"lmemo key 1\n" + encoding).digest() == digest, f"{where}: digest")
    return Record(offset, byte_count, type_number, written, digest, encoding, value)


def read_unfinished(data: bytes) -> list[Record]:
    """The records of a file without an end, up to the first torn one."""
    nonce, _ = read_header(data)
    records: list[Record] = []
    offset = HEADER_BYTES
    while True:
        try:
            records.append(read_record(data, offset, nonce))
        except Damaged:
            return records
        offset += records[-1].byte_count


def read_footer(data: bytes, nonce: int) -> Footer:
    start = len(data) - FOOTER_BYTES
    block = piece(data, start, FOOTER_BYTES, "footer")
    magic, version, reserved, footer_nonce, *numbers, zeros, stored = struct.unpack("<8sIIQ8Qqq16sQ", block)
    expect(magic == b"LMEMOEND" and version == 1, "footer magic or version")
    expect(checksum(block[:120]) == stored, "footer checksum")
    expect(reserved == 0 and zeros == bytes(16) and footer_nonce == nonce, "footer: reserved bytes or nonce")
    footer = Footer(*numbers)
    expect(footer.footer_offset == start, "footer offset")
    expect(
        footer.fields_offset == footer.index_offset + INDEX_ENTRY_BYTES * footer.entry_count, "fields offset"
    )
    expect(
        HEADER_BYTES <= footer.index_offset <= footer.fields_offset <= footer.kinds_offset <= start, "offsets"
    )
    expect(not any(offset % 8 for offset in footer[1:5]), "an offset is not a multiple of 8")
    return footer


def read_index(block: bytes) -> list[IndexEntry]:
    entries = [IndexEntry(*fields) for fields in struct.iter_unpack("<32sQqQIHH", block)]
    digests = [entry.digest for entry in entries]
    expect(all(one < next_one for one, next_one in zip(digests, digests[1:])), "index out of order")
    return entries


def read_fields(block: bytes, entry_count: int) -> list[tuple[bytes, ...]]:
    """The encoded fields of every index entry."""
    distinct, reference_count = struct.unpack("<II", piece(block, 0, 8, "fields"))
    number_count = distinct + 1 + entry_count + 1 + reference_count
    numbers = struct.unpack(f"<{number_count}I", piece(block, 8, 4 * number_count, "fields"))
    starts = numbers[: distinct + 1]
    rows = numbers[distinct + 1 : distinct + 1 + entry_count + 1]
    references = numbers[distinct + 1 + entry_count + 1 :]
    data = block[8 + 4 * number_count :]
    expect(starts[0] == 0 and rows[0] == 0 and rows[-1] == reference_count, "fields: first or last offset")
    expect(list(starts) == sorted(starts) and list(rows) == sorted(rows), "fields: offsets fall")
    expect(len(block) == padded(8 + 4 * number_count + starts[-1]), "fields: length")
    expect(not any(data[starts[-1] :]), "fields: padding")
    fields = []
    for start, end in zip(starts, starts[1:]):
        expect(read_field(data, start)[1] == end, "fields: a field of another length")
        fields.append(data[start:end])
    expect(len(set(fields)) == len(fields), "fields: a field that is there twice")
    expect(all(number < distinct for number in references), "fields: reference past the end")
    return [tuple(fields[n] for n in references[start:end]) for start, end in zip(rows, rows[1:])]


def read_kinds(block: bytes) -> list[str]:
    (count,) = struct.unpack("<H", piece(block, 0, 2, "kinds"))
    kinds, offset = [], 2
    for _ in range(count):
        length = piece(block, offset, 1, "kinds")[0]
        kinds.append(as_text(piece(block, offset + 1, length, "kinds")))
        offset += 1 + length
    expect(len(block) == padded(offset) and not any(block[offset:]), "kinds: length or padding")
    expect(len(set(kinds)) == count, "kinds: a kind that is there twice")
    return kinds


def latest_of_each(records: list[Record]) -> dict[bytes, Record]:
    latest: dict[bytes, Record] = {}
    for record in records:
        if record.digest not in latest or latest[record.digest].written < record.written:
            latest[record.digest] = record
    return latest


def read_segment(data: bytes) -> Segment:
    """Everything in a finished segment. Raises Damaged if one byte is not as it should be."""
    nonce, created = read_header(data)
    footer = read_footer(data, nonce)
    blocks = []
    for name, start, end, stored in (
        ("index", footer.index_offset, footer.fields_offset, footer.index_checksum),
        ("fields", footer.fields_offset, footer.kinds_offset, footer.fields_checksum),
        ("kinds", footer.kinds_offset, footer.footer_offset, footer.kinds_checksum),
    ):
        blocks.append(data[start:end])
        expect(checksum(blocks[-1], nonce) == stored, f"{name} checksum")
    index, kinds = read_index(blocks[0]), read_kinds(blocks[2])
    fields_of_entries = read_fields(blocks[1], len(index))

    records, offset = [], HEADER_BYTES
    while offset < footer.index_offset:
        records.append(read_record(data[: footer.index_offset], offset, nonce))
        offset += records[-1].byte_count
    expect(offset == footer.index_offset, "records do not end where the index begins")

    latest = latest_of_each(records)
    expect({entry.digest for entry in index} == set(latest), "index and records name different digests")
    for entry, fields in zip(index, fields_of_entries):
        record = latest[entry.digest]
        expect(
            entry[1:4] == (record.offset, record.written, len(record.value)), "index entry and record differ"
        )
        expect(entry.encoding_bytes == len(record.encoding), "index entry and record differ in their key")
        if record.type == ERASURE:
            expect(entry.kind == NO_KIND and fields == (), "an erasure with kind or fields")
        else:
            expect(entry.kind < len(kinds), "kind past the end")
            expect(Key(kinds[entry.kind], fields) == read_key(record.encoding), "fields and key differ")
    times = [entry.written for entry in index] or [0]
    expect((footer.oldest, footer.newest) == (min(times), max(times)), "oldest or newest")
    return Segment(nonce, created, records, index, kinds)


def main() -> None:
    for name in sys.argv[1:]:
        segment = read_segment(Path(name).read_bytes())
        print(
            f"{name}: nonce {segment.nonce:016x}, {len(segment.records)} records, {len(segment.entries)} in the index"
        )
        for record in segment.records:
            what = read_key(record.encoding).kind if record.type == VALUE else "erasure"
            print(f"  {record.offset:8} {record.digest.hex()[:16]} {what} {len(record.value)} bytes")


if __name__ == "__main__":
    main()
