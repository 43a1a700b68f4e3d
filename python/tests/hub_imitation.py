"""A web server of this machine that has files, and breaks off downloads if it is told to. Also speaks as much of the hub's language as
huggingface_hub needs to list and fetch the files of one data set or one model, OWNER/NAME."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

COMMIT = "1234567890abcdef1234567890abcdef12345678"


@dataclass
class Files:
    """What a server has. The content may be changed while it runs."""

    content: dict[str, bytes]
    large: frozenset[str] = frozenset()  # Listed with a SHA-256, as files in LFS are; others with git's digest.
    served: dict[str, bytes] = field(default_factory=dict)  # What arrives instead of the content.
    breaks: dict[str, list[int]] = field(default_factory=dict)  # After how many bytes each of the next answers breaks off.
    becomes: dict[str, bytes] = field(default_factory=dict)  # The content after the first answer.
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)  # Word, path, Range.
    tells_digest: bool = False
    address: str = ""

    def listing(self) -> dict[str, Any]:
        siblings: list[dict[str, Any]] = []
        for name, content in self.content.items():
            one: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
            if name in self.large:
                one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            siblings.append(one)
        return {"id": "OWNER/NAME", "sha": COMMIT, "siblings": siblings, "private": False, "tags": [], "downloads": 0, "likes": 0}

    def tree(self) -> list[dict[str, Any]]:
        return [{"type": "file", "path": one["rfilename"], "size": one["size"], "oid": one["blobId"]} for one in self.listing()["siblings"]]

    def ranges_of(self, name: str) -> list[str | None]:
        return [asked for word, path, asked in self.requests if word == "GET" and path.endswith(name)]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: Files

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = self.path.partition("?")[0].lstrip("/")
        self.files.requests.append((self.command, path, self.headers.get("Range")))
        if re.fullmatch(r"api/(datasets|models)/OWNER/NAME(/revision/\w+)?", path):
            return self._send(200, json.dumps(self.files.listing()).encode(), {"Content-Type": "application/json"})
        if re.fullmatch(r"api/models/OWNER/NAME/tree/\w+", path):
            return self._send(200, json.dumps(self.files.tree()).encode(), {"Content-Type": "application/json"})
        name = re.sub(r"^(datasets/)?OWNER/NAME/resolve/\w+/", "", path)
        if name not in self.files.content:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        self._send_file(name)

    def _send_file(self, name: str) -> None:
        content = self.files.served.get(name, self.files.content[name])
        etag = f'"{hashlib.sha256(self.files.content[name]).hexdigest()}"'
        headers = {"ETag": etag, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if self.files.tells_digest:
            headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(hashlib.sha256(self.files.content[name]).digest()).decode()}:"
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if self.headers.get("If-Range", etag) != etag:
            start = 0
        if start >= len(content) > 0 and start > 0:
            return self._send(416, b"", headers)
        if start > 0:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        breaks = self.files.breaks.get(name, []) if self.command == "GET" else []
        self._send(206 if start else 200, content[start:], headers, breaks.pop(0) if breaks else None)
        if self.command == "GET" and name in self.files.becomes:
            self.files.content[name] = self.files.becomes.pop(name)

    def _send(self, status: int, body: bytes, headers: dict[str, str], breaks_after: int | None = None) -> None:
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:breaks_after])
        if breaks_after is not None:
            self.close_connection = True


@contextmanager
def serving(files: Files) -> Iterator[Files]:
    handler = type("Handler", (_Handler,), {"files": files})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield files
        finally:
            server.shutdown()
