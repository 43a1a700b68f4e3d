"""Brings inputs that need Python into a folder as JSON lines, for `lmemo chunks`.

Parquet and Arrow files through pyarrow, `https://` with retries and resumed downloads, `hf://datasets/…` through
huggingface_hub. What was imported stays: a chunk can be built again without the network. An input that did not change is not
imported again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ATTEMPTS = 6
_TABLES = (".parquet", ".arrow", ".feather")


def import_documents(source: str, folder: str, text_field: str) -> list[str]:
    """The paths of JSON lines (or texts) with the documents of `source`, below `folder`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if source.startswith("hf://datasets/"):
        files = _from_hub(source.removeprefix("hf://datasets/"), target)
    elif source.startswith(("https://", "http://")):
        files = [_download(source, target / _safe_name(source))]
    elif "://" in source:
        raise ValueError(f"{source}: expected a file, hf://datasets/OWNER/NAME or https://…")
    else:
        files = [Path(source).resolve()]
    return [str(_as_lines(file, target, text_field) if file.suffix in _TABLES else file) for file in files]


def _safe_name(source: str) -> str:
    name = Path(urllib.parse.urlparse(source).path).name or "document"
    return hashlib.sha256(source.encode()).hexdigest()[:12] + "-" + name


def _from_hub(name: str, target: Path) -> list[Path]:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise RuntimeError("hf:// needs huggingface_hub: pip install huggingface_hub") from error
    owner_and_name, _, inside = "/".join(name.split("/")[:2]), "/", "/".join(name.split("/")[2:])
    repository, _, revision = owner_and_name.partition("@")
    patterns = [inside or "**"]
    for attempt in range(_ATTEMPTS):
        try:  # It resumes what broke off, and checks sizes and digests.
            root = Path(
                snapshot_download(
                    repository, repo_type="dataset", revision=revision or None, allow_patterns=patterns, local_dir=target / _safe_name(name)
                )
            )
            break
        except OSError:
            if attempt + 1 == _ATTEMPTS:
                raise
            time.sleep(2**attempt)
    suffixes = (*_TABLES, ".jsonl", ".json", ".ndjson", ".gz", ".zst", ".txt")
    return sorted(file for file in root.rglob("*") if file.is_file() and file.name.endswith(suffixes) and ".cache" not in file.parts)


def _download(address: str, path: Path) -> Path:
    """With retries and backoff; what arrived is kept and the rest asked for. The length must be the one announced."""
    part = path.with_name(path.name + ".part")
    if path.exists():
        return path
    for attempt in range(_ATTEMPTS):
        have = part.stat().st_size if part.exists() else 0
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer, part.open("ab" if answer.status == 206 else "wb") as file:
                announced = answer.headers.get("Content-Length")
                expected = (have if answer.status == 206 else 0) + int(announced) if announced else None
                while block := answer.read(1 << 20):
                    file.write(block)
            if expected is None or part.stat().st_size == expected:
                os.replace(part, path)
                return path
        except urllib.error.HTTPError as error:
            if error.code == 416:  # All of it is there.
                os.replace(part, path)
                return path
            if error.code < 500 and error.code != 429:
                raise
        except OSError:
            pass
        time.sleep(min(30, 0.25 * 2**attempt))
    raise OSError(f"cannot download {address}: gave up after {_ATTEMPTS} attempts; run it again to go on")


def _as_lines(table: Path, target: Path, text_field: str) -> Path:
    """The text column of a table as JSON lines. The name has the table's stamp: a changed table is another file."""
    stamp = table.stat()
    identity = f"{table}\0{stamp.st_size}\0{stamp.st_mtime_ns}\0{text_field}"
    path = target / f"{hashlib.sha256(identity.encode()).hexdigest()[:12]}-{table.stem}.jsonl"
    if path.exists():
        return path
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        for text in _texts(table, text_field):
            file.write(json.dumps({text_field: text}, ensure_ascii=False) + "\n")
    os.replace(part, path)
    return path


def _texts(table: Path, text_field: str) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RuntimeError(f"{table} needs pyarrow: pip install pyarrow") from error
    if table.suffix == ".parquet":
        for batch in pyarrow.parquet.ParquetFile(table).iter_batches(columns=[text_field]):
            yield from batch.column(0).to_pylist()
        return
    with pyarrow.memory_map(str(table)) as mapped:
        try:
            reader = pyarrow.ipc.open_stream(mapped)
        except pyarrow.ArrowInvalid:
            mapped.seek(0)
            file = pyarrow.ipc.open_file(mapped)
            for number in range(file.num_record_batches):
                yield from file.get_batch(number).column(text_field).to_pylist()
            return
        for batch in reader:
            yield from batch.column(text_field).to_pylist()
