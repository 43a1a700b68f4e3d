"""Writes the golden segments: made once by the writer of a release, then read by every later one.

    .venv/bin/python tests/golden/make_segments.py v1

Beside each file stands what it must hold, as NAME.json: {"writer", "is_sealed", "records", "entries"}. A record is
{"digest", "encoding", "written_ns", "value_bytes", "value_sha256"}, an erasure just {"digest"}; all in the order in
which they were put. "entries" are the digests that can be found. What must hold is taken from what was put, not from
what was written. Never run this for an old version again: its files are the proof that they can still be read.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import lmemo
from lmemo import Key

HERE = Path(__file__).parent
KEYS: dict[str, Any] = json.loads((HERE / "keys.json").read_text())


class Recorder:
    """Puts into a store, and remembers what the segment must hold."""

    def __init__(self, directory: Path) -> None:
        self.store = lmemo.Store(directory, publish_seconds=1e9)
        self.records: list[dict[str, object]] = []
        self.entries: dict[str, None] = {}

    def put(self, key: Key, value: bytes) -> None:
        assert self.store.put(key, value)
        hit = self.store.find(key)
        assert hit is not None
        self.records.append(
            {
                "digest": key.hex,
                "encoding": key.encoding.hex(),
                "written_ns": hit.written_ns,
                "value_bytes": len(value),
                "value_sha256": hashlib.sha256(value).hexdigest(),
            }
        )
        self.entries[key.hex] = None

    def erase(self, key: Key) -> None:
        assert self.store.erase(key)
        self.records.append({"digest": key.hex})
        del self.entries[key.hex]

    def write(self, name: str, data: bytes, records: list[dict[str, object]] | None = None) -> None:
        (HERE / name).write_bytes(data)
        records = self.records if records is None else records
        expected = {
            "writer": f"lmemo {lmemo.__version__}",
            "is_sealed": name.endswith(".seg"),
            "records": records,
            "entries": sorted(self.entries.keys() & {str(record["digest"]) for record in records}),
        }
        (HERE / name).with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")


def small(recorder: Recorder) -> None:
    recorder.put(Key.of("tokens", section="a"), b"hello")


def mixed(recorder: Recorder) -> None:
    """Every key of keys.json, values of many lengths, overwritten and erased entries."""
    keys = [Key.from_encoding(bytes.fromhex(vector["encoding"])) for vector in KEYS["vectors"]]
    for number, key in enumerate(keys):
        recorder.put(key, bytes(range(number)) * (number % 5))
    for key in keys[::7]:
        recorder.put(key, b"overwritten")
    for key in {key: None for key in keys[::5]}:
        recorder.erase(key)
    recorder.put(keys[5], b"erased and put again")
    recorder.put(Key.of("large"), bytes(range(256)) * 40)


def main() -> None:
    version = sys.argv[1]
    for name, fill in (("small", small), ("mixed", mixed)):
        with tempfile.TemporaryDirectory() as scratch:
            recorder = Recorder(Path(scratch))
            fill(recorder)
            recorder.store.close()
            (segment,) = Path(scratch).glob("segments/*.seg")
            recorder.write(f"{name}-{version}.seg", segment.read_bytes())

    with (
        tempfile.TemporaryDirectory() as scratch
    ):  # What a writer leaves that is killed in the middle of a put.
        recorder = Recorder(Path(scratch))
        for number in range(3):
            recorder.put(Key.of("tokens", n=number), bytes([number]) * 100)
        (part,) = Path(scratch).glob("writing/*.part")
        last = lmemo.inspect_file(part).records[-1]
        recorder.write(
            f"torn-{version}.part", part.read_bytes()[: last.value_offset + 50], recorder.records[:-1]
        )
        recorder.store.close()


if __name__ == "__main__":
    main()
