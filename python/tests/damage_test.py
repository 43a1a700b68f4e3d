"""A damaged file costs what was damaged: a miss, a counter and one warning; never a wrong byte, never a crash."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import lmemo


def key(n: int) -> lmemo.Key:
    return lmemo.Key.of("test", n=n)


def value(n: int) -> bytes:
    return bytes([n]) * 1000


@pytest.fixture
def segment(directory: Path) -> Path:
    """The one segment of a store with ten entries."""
    with lmemo.Store(directory) as store:
        for n in range(10):
            store.put(key(n), value(n))
    (file,) = (directory / "segments").iterdir()
    return file


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 0x40]))


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "lmemo"]


def test_a_flipped_byte_is_a_miss_that_is_named_once(
    directory: Path, segment: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = next(record for record in lmemo.inspect_file(segment).records if record.key == key(3))
    flip(segment, damaged.value_offset + 500)
    with lmemo.Store(directory) as store:
        for _ in range(3):
            assert store.find(key(3)) is None
        assert [n for n in range(10) if store.find(key(n)) != value(n)] == [3]
        assert store.stats().damaged_records == 1
        assert len(warnings_in(caplog)) == 1
        assert segment.name in warnings_in(caplog)[0]

        report = store.verify()
        assert not report.is_clean
        assert [damage.digest for damage in report.damage] == [key(3).digest]
        assert report.damage[0].file.endswith(segment.name)
        repaired = store.repair()
        assert repaired.found == report or len(repaired.found.damage) == 1
        assert (repaired.lost_records, repaired.kept_records) == (1, 9)
        assert store.verify().is_clean
        store.put(key(3), b"computed again")
        assert store.find(key(3)) == b"computed again"


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.7, 0.99])
def test_a_cut_file_keeps_what_is_before_the_cut(
    directory: Path, segment: Path, fraction: float, caplog: pytest.LogCaptureFixture
) -> None:
    data = segment.read_bytes()
    records = lmemo.inspect_file(segment).records
    cut = int(len(data) * fraction)
    segment.write_bytes(data[:cut])
    whole = {record.digest for record in records if record.offset + record.stored_bytes <= cut}
    with lmemo.Store(directory) as store:
        for n in range(10):
            hit = store.find(key(n))
            assert hit is None or hit == value(n)
            assert (hit is not None) == (key(n).digest in whole)
        assert warnings_in(caplog)
        store.repair()
        assert store.verify().is_clean
        assert sum(store.find(key(n)) is not None for n in range(10)) == len(whole)


def test_no_flipped_byte_gives_a_wrong_value(directory: Path, segment: Path) -> None:
    logging.getLogger("lmemo").disabled = True
    try:
        data = segment.read_bytes()
        for offset in range(0, len(data), 37):
            segment.write_bytes(data)
            flip(segment, offset)
            with lmemo.Store(directory, read_only=True) as store:
                for n in range(10):
                    hit = store.find(key(n))
                    assert hit is None or hit == value(n), f"byte {offset}"
    finally:
        logging.getLogger("lmemo").disabled = False


def test_a_handler_that_fails_or_calls_back_does_no_harm(
    directory: Path, segment: Path, recwarn: pytest.WarningsRecorder
) -> None:
    damaged = lmemo.inspect_file(segment).records[0]
    flip(segment, damaged.value_offset)
    assert damaged.key is not None
    seen: list[int] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(store.stats().damaged_records)
            raise ZeroDivisionError

    handler = Handler()
    logger = logging.getLogger("lmemo")
    logger.addHandler(handler)
    try:
        with lmemo.Store(directory) as store:
            assert store.find(damaged.key) is None
            assert seen == [1]
            assert store.put(damaged.key, b"new") and store.find(damaged.key) == b"new"
    finally:
        logger.removeHandler(handler)


def test_what_is_no_store_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    with pytest.raises(lmemo.Error):
        lmemo.inspect_file(file)
    with pytest.raises(lmemo.IoError) as caught:
        lmemo.inspect_file(tmp_path / "nothing")
    assert isinstance(caught.value, OSError) and "nothing" in str(caught.value)
    with pytest.raises(lmemo.Error):
        lmemo.Store(file)


def test_what_lmemo_keeps_beside_the_entries_is_not_foreign(directory: Path, segment: Path) -> None:
    for name in ("claims.lock", "metrics.db", "metrics.db-wal"):
        (directory / name).touch()
    with lmemo.Store(directory) as store:
        assert store.verify().foreign == []


def test_foreign_files_with_odd_names_are_reported_and_left_alone(directory: Path, segment: Path) -> None:
    odd = bytes(directory / "segments") + b"/\xff odd.seg"
    with open(odd, "wb") as file:
        file.write(b"mine")
    with lmemo.Store(directory) as store:
        assert any("odd.seg" in name for name in store.verify().foreign)
        store.repair()
    with open(odd, "rb") as file:
        assert file.read() == b"mine"
