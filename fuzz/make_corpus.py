"""Makes the seeds of the store's fuzz targets from the golden files: python3 fuzz/make_corpus.py"""

import json
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
golden = here.parent / "tests" / "golden"
corpus = here / "corpus"


def seed(target: str, name: str, data: bytes) -> None:
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


for path in sorted(golden.glob("*-v1.*")):
    if path.suffix == ".json":
        continue
    data = path.read_bytes()
    targets = ["segment_fuzz", "sound_segment_fuzz", "salvage_fuzz"]
    if len(data) < 4000:  # Opening, repairing and compacting a store takes long enough.
        targets.append("store_fuzz")
    for target in targets:
        seed(target, path.name, data)
    if data[-128:-120] != b"LMEMOEND":
        seed("record_fuzz", path.name, data[64:4000])
        continue
    entries, index, fields, kinds, footer = struct.unpack_from("<5Q", data, len(data) - 128 + 24)
    seed("record_fuzz", path.name, data[64 : min(index, 4000)])
    seed("fields_fuzz", path.name, bytes([entries % 8]) + data[fields:kinds])
    seed("kinds_fuzz", path.name, data[kinds:footer])

for number, vector in enumerate(json.loads((golden / "keys.json").read_text())["vectors"]):
    if number % 4 == 0:
        seed("key_fuzz", f"vector-{number:03}", bytes.fromhex(vector["encoding"]))
        seed("fields_fuzz", f"vector-{number:03}", b"\0" + bytes.fromhex(vector["encoding"]))
