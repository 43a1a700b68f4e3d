"""Brings inputs that need Python into a folder as JSON lines, for `lmemo chunks`.

Parquet and Arrow files through pyarrow, `https://` with retries and resumed downloads, `hf://datasets/…` through
huggingface_hub, each file compared with the digest that the hub lists. What was imported stays: a chunk can be built again without the network. An input that did not change is not
imported again.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ATTEMPTS = 6
_TABLES = (".parquet", ".arrow", ".feather")
_DATA = (*_TABLES, ".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst", ".txt")


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
        files = [Path(source)]
    return [str(_as_lines(file, target, text_field) if file.suffix in _TABLES else file) for file in files]


def _safe_name(source: str) -> str:
    name = Path(urllib.parse.urlparse(source).path).name or "document"
    return hashlib.sha256(source.encode()).hexdigest()[:12] + "-" + name


def _from_hub(name: str, target: Path) -> list[Path]:
    """The data files of OWNER/NAME[@REVISION][/PATTERN], at one commit."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise RuntimeError("hf:// needs huggingface_hub: pip install huggingface_hub") from error
    owner, _, rest = name.partition("/")
    named, _, pattern = rest.partition("/")
    dataset, _, revision = named.partition("@")
    if not owner or not dataset:
        raise ValueError(f"hf://datasets/{name}: expected hf://datasets/OWNER/NAME[@REVISION][/PATTERN]")
    repository, root = f"{owner}/{dataset}", target / _safe_name(name)
    api = huggingface_hub.HfApi()
    info = _retried(lambda: api.dataset_info(repository, revision=revision or None, files_metadata=True))
    wanted = [file for file in info.siblings or [] if _is_wanted(file.rfilename, pattern)]
    if not wanted:
        raise ValueError(f"hf://datasets/{name}: none of its {len(info.siblings or [])} files is {', '.join(_DATA)}" + (f" and like {pattern}" if pattern else ""))
    found = []
    for file in sorted(wanted, key=lambda one: one.rfilename):
        for is_last in (False, True):  # The hub's client resumes what broke off, but looks at lengths only.
            fetched = _retried(lambda: huggingface_hub.hf_hub_download(repository, file.rfilename, repo_type="dataset", revision=info.sha, local_dir=root))
            path = Path(fetched)
            if _is_as_listed(path, file):
                found.append(path)
                break
            path.unlink()
            if is_last:
                raise ValueError(f"{file.rfilename} of hf://datasets/{name}: what arrived is not what the hub lists (another digest); refused")
    return found


def _is_wanted(path: str, pattern: str) -> bool:
    return path.endswith(_DATA) and (not pattern or fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/"))


def _is_as_listed(path: Path, listed: Any) -> bool:
    """By the SHA-256 of a large file, or by git's name for a small one."""
    if listed.lfs is not None:
        expected, digest = listed.lfs["sha256"] if isinstance(listed.lfs, dict) else listed.lfs.sha256, hashlib.sha256()
    elif listed.blob_id:
        expected, digest = listed.blob_id, hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    else:
        return True
    return bool(_fed(digest, path).hexdigest() == expected)


def _fed(digest: Any, path: Path) -> Any:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest


def _retried(attempt: Callable[[], Any]) -> Any:
    """With growing pauses, unless the answer is one that will not change."""
    for number in range(_ATTEMPTS):
        try:
            return attempt()
        except (ValueError, TypeError):
            raise
        except Exception as error:
            status = getattr(getattr(error, "response", None), "status_code", 500)
            if number + 1 == _ATTEMPTS or (status < 500 and status not in (408, 429)):
                raise
            _pause(number)


def _pause(number: int) -> None:
    time.sleep(min(30, 0.25 * 2**number))


def _download(address: str, path: Path) -> Path:
    """With retries and growing pauses; what arrived is kept and the rest asked for, if it is still the same file.

    The length must be the one announced; so must the SHA-256, if the server tells it (Repr-Digest) or the address does (#sha256=…).
    """
    if path.exists():
        return path
    address, _, fragment = address.partition("#")
    told = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
    part, version_file = path.with_name(path.name + ".part"), path.with_name(path.name + ".version")
    for number in range(_ATTEMPTS):
        version = version_file.read_text() if version_file.exists() else ""
        have = part.stat().st_size if part.exists() and version else 0
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-", "If-Range": version} if have else {})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                announced, digest = _receive(answer, have, part, version_file)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # More is here than there: another file, or a download that was complete.
                part.unlink(missing_ok=True)
                continue
            if error.code < 500 and error.code not in (408, 429):
                raise
        except (OSError, http.client.HTTPException):
            pass
        else:
            if announced is None or part.stat().st_size == announced:
                _check_digest(address, part, told or digest)
                version_file.unlink(missing_ok=True)
                os.replace(part, path)
                return path
        _pause(number)
    raise OSError(f"cannot download {address}: gave up after {_ATTEMPTS} attempts; run it again to go on")


def _receive(answer: Any, have: int, part: Path, version_file: Path) -> tuple[int | None, str | None]:
    """Writes the body. Gives the length of the whole file and its SHA-256, as far as the server tells them."""
    goes_on = answer.status == 206
    # A weak ETag does not promise the same bytes.
    version = answer.headers.get("ETag", "")
    version_file.write_text(answer.headers.get("Last-Modified", "") if not version or version.startswith("W/") else version)
    length = answer.headers.get("Content-Length")
    with part.open("ab" if goes_on else "wb") as file:
        while block := answer.read(1 << 20):
            file.write(block)
    found = re.search("sha-256=:([A-Za-z0-9+/=]+):", answer.headers.get("Repr-Digest", ""))
    return (have if goes_on else 0) + int(length) if length else None, base64.b64decode(found[1]).hex() if found else None


def _check_digest(address: str, part: Path, expected: str | None) -> None:
    if expected is None or _fed(hashlib.sha256(), part).hexdigest() == expected.lower():
        return
    part.unlink()
    raise ValueError(f"{address}: what arrived has another SHA-256 than {expected}; refused")


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
        file = pyarrow.parquet.ParquetFile(table)
        _need_column(table, file.schema_arrow.names, text_field)
        for batch in file.iter_batches(columns=[text_field]):
            yield from batch.column(0).to_pylist()
        return
    with pyarrow.memory_map(str(table)) as mapped:
        try:
            batches: Any = pyarrow.ipc.open_stream(mapped)
            names = batches.schema.names
        except pyarrow.ArrowInvalid:
            mapped.seek(0)
            reader = pyarrow.ipc.open_file(mapped)
            names = reader.schema.names
            batches = map(reader.get_batch, range(reader.num_record_batches))
        _need_column(table, names, text_field)
        for batch in batches:
            yield from batch.column(text_field).to_pylist()


def _need_column(table: Path, names: list[str], text_field: str) -> None:
    if text_field not in names:
        raise ValueError(f"{table} has no column {text_field}; it has {', '.join(names)}; choose one with --text-field")
