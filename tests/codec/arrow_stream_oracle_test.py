"""pyarrow reads what the Arrow writer wrote, value for value."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("LMEMO_BUILD_DIR", ROOT / "build" / "dev")) / "tests" / "programs"


@pytest.mark.parametrize("seed", range(12))
def test_pyarrow_reads_the_rows_that_were_written(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "table.arrow"
    done = subprocess.run([PROGRAMS / "arrow_sample", file, str(seed)], capture_output=True, text=True, check=True)
    with pa.memory_map(str(file)) as mapped:
        table = pa.ipc.open_stream(mapped).read_all()
        table.validate(full=True)
        assert table.to_pylist() == json.loads(done.stdout)
        assert table.schema == pa.schema(
            [
                ("input_ids", pa.list_(pa.int32())),
                ("attention_mask", pa.list_(pa.int8())),
                ("length", pa.int64()),
                ("ratio", pa.float32()),
            ]
        )
