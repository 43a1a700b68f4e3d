"""The page, the C++ writer and the C++ reader agree: golden files, random stores, every byte flipped."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmemo

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"
SEGMENTS = sorted(GOLDEN.glob("*.seg"))
PARTS = sorted(GOLDEN.glob("*.part"))

spec = importlib.util.spec_from_file_location("lmemo_independent_reader", HERE / "reader.py")
assert spec is not None and spec.loader is not None
reader: Any = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = reader
spec.loader.exec_module(reader)


def expected_of(file: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(file.with_suffix(".json").read_text())
    return expected


def described(record: Any) -> dict[str, object]:
    """A record the way the .json beside a golden file has it."""
    if record.type == reader.ERASURE:
        return {"digest": record.digest.hex()}
    return {
        "digest": record.digest.hex(),
        "encoding": record.encoding.hex(),
        "written_ns": record.written,
        "value_bytes": len(record.value),
        "value_sha256": hashlib.sha256(record.value).hexdigest(),
    }


def test_there_are_golden_files() -> None:
    assert len(SEGMENTS) >= 2 and PARTS


@pytest.mark.parametrize("file", SEGMENTS, ids=lambda file: file.name)
def test_golden_segments_hold_what_was_put(file: Path) -> None:
    segment, expected = reader.read_segment(file.read_bytes()), expected_of(file)
    assert [described(record) for record in segment.records] == expected["records"]
    found = {entry.digest.hex() for entry in segment.entries if entry.kind != reader.NO_KIND}
    assert found == set(expected["entries"])


@pytest.mark.parametrize("file", PARTS, ids=lambda file: file.name)
def test_golden_leftovers_hold_what_was_put_before_the_kill(file: Path) -> None:
    records = reader.read_unfinished(file.read_bytes())
    assert [described(record) for record in records] == expected_of(file)["records"]


@pytest.mark.parametrize("file", SEGMENTS + PARTS, ids=lambda file: file.name)
def test_lmemo_inspects_golden_files(file: Path) -> None:
    seen, expected = lmemo.inspect_file(file), expected_of(file)
    assert seen.is_sealed == expected["is_sealed"]
    assert [record.digest.hex() for record in seen.records] == [
        record["digest"] for record in expected["records"]
    ]
    data = file.read_bytes()
    for record, wanted in zip(seen.records, expected["records"]):
        assert record.is_erasure == ("encoding" not in wanted)
        if not record.is_erasure:
            assert record.key is not None and record.key.encoding.hex() == wanted["encoding"]
            value = data[record.value_offset : record.value_offset + record.value_bytes]
            assert hashlib.sha256(value).hexdigest() == wanted["value_sha256"]


@pytest.mark.parametrize("file", SEGMENTS + PARTS, ids=lambda file: file.name)
def test_lmemo_finds_what_golden_files_hold(file: Path, tmp_path: Path) -> None:
    data, expected = file.read_bytes(), expected_of(file)
    nonce, created = reader.read_header(data)
    place = tmp_path / ("segments" if expected["is_sealed"] else "writing")
    lmemo.Store(tmp_path).close()
    (place / f"{created:016x}-{nonce:016x}{file.suffix}").write_bytes(data)
    values = {record["digest"]: record.get("value_sha256") for record in expected["records"]}
    with lmemo.Store(tmp_path) as store:
        entries = store.scan()
        assert sorted(entry.digest.hex() for entry in entries) == expected["entries"]
        for entry in entries:
            assert entry.key is not None
            hit = store.find(entry.key)
            assert hit is not None
            assert hashlib.sha256(hit).hexdigest() == values[entry.digest.hex()]
        assert store.repair().lost_records == 0
        assert store.verify().is_clean


def test_no_flipped_byte_goes_unseen() -> None:
    whole = (GOLDEN / "small-v1.seg").read_bytes()
    reader.read_segment(whole)
    for position in range(len(whole)):
        for mask in (0x01, 0x80):
            flipped = bytearray(whole)
            flipped[position] ^= mask
            with pytest.raises(reader.Damaged):
                reader.read_segment(bytes(flipped))


def test_no_cut_goes_unseen() -> None:
    whole = (GOLDEN / "small-v1.seg").read_bytes()
    for length in range(len(whole)):
        with pytest.raises(reader.Damaged):
            reader.read_segment(whole[:length])


NAMES = st.sampled_from(["layer", "model", "prompt", "odd name"])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=300), st.binary(max_size=9)
)
KEYS = st.builds(
    lmemo.Key.of, st.sampled_from(["tokens", "forward"]), st.dictionaries(NAMES, VALUES, max_size=3)
)
STEPS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=40)), max_size=20)  # None: erase.


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=3))
def test_the_reader_sees_what_lmemo_wrote(batches: list[list[tuple[lmemo.Key, bytes | None]]]) -> None:
    model: dict[bytes, bytes] = {}
    with tempfile.TemporaryDirectory() as directory:
        with lmemo.Store(directory) as store:
            for batch in batches:
                for key, value in batch:
                    if value is None:
                        store.erase(key)
                        model.pop(key.digest, None)
                    else:
                        store.put(key, value)
                        model[key.digest] = value
                store.flush()
        segments = [reader.read_segment(file.read_bytes()) for file in Path(directory).glob("segments/*.seg")]
    own = {
        record.digest
        for segment in segments
        for record in segment.records
        if record.type == reader.VALUE and reader.read_key(record.encoding).kind.startswith("lmemo.")
    }
    latest = reader.latest_of_each([record for segment in segments for record in segment.records])
    values = {digest: record.value for digest, record in latest.items() if record.type == reader.VALUE}
    assert {digest: value for digest, value in values.items() if digest not in own} == model
