"""A small HTTP server that behaves like the hub, and misbehaves on request."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import unquote, urlsplit

REPO = "someone/small-mixtral"
COMMIT = "c0ffee" * 6 + "c0ff"


@dataclass
class Request:
    """One request that the server got."""

    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str | None:
        """Its Range header."""
        return self.headers.get("range")


@dataclass
class Faults:
    """How files are served wrongly; the default is right."""

    drop_after: list[int] = field(default_factory=list)  # per request: close after so many bytes of the body
    status: list[int] = field(default_factory=list)  # per request: answer with this status instead
    retry_after: str | None = None
    ignore_range: bool = False
    no_etag: bool = False
    wrong_range: bool = False  # a 206 that starts elsewhere
    extra: bytes = b""  # sent after the file, without a Content-Length
    length: str | None = None  # sent in the place of the right Content-Length
    redirect_to: str | None = None  # another server's address


class HubServer:
    """Serves `files` of one repository. Use it in a `with` block."""

    def __init__(self, files: dict[str, bytes], *, lfs: Callable[[str], bool] | None = None) -> None:
        self.files = dict(files)
        self.listed = dict(files)  # what the list of files is made from
        self.lfs = lfs or (lambda name: name.endswith(".safetensors"))
        self.faults = Faults()
        self.requests: list[Request] = []
        self.list_status = 200
        self.list_headers: dict[str, str] = {}
        self.list_body: bytes | None = None
        self.lists_dropped = 0  # so many requests for the list get no answer at all
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def url(self, name: str) -> str:
        return f"{self.address}/{REPO}/resolve/{COMMIT}/{name}"

    def file_requests(self, name: str) -> list[Request]:
        return [request for request in self.requests if request.path.endswith(f"/{name}")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def listing(self) -> bytes:
        """What the hub's API answers for the repository, with sizes and hashes."""
        siblings = []
        for name, data in self.listed.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": blob}
            if self.lfs(name):
                sha256 = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"size": len(data), "sha256": sha256, "pointerSize": 130}
            siblings.append(entry)
        return json.dumps({"id": REPO, "modelId": REPO, "sha": COMMIT, "siblings": siblings}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def end_headers(self) -> None:
                """Say that the connection ends: a client that kept it would find it closed the next time."""
                self.send_header("Connection", "close")
                super().end_headers()

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.requests.append(Request(path, {k.lower(): v for k, v in self.headers.items()}))
                self.close_connection = True
                if path.startswith("/api/") and hub.lists_dropped:
                    hub.lists_dropped -= 1
                    return
                if path.startswith("/api/"):
                    body = hub.listing() if hub.list_body is None else hub.list_body
                    self._answer(hub.list_status, hub.list_headers, body)
                    return
                name = path.rpartition("/")[2]
                if name not in hub.files:
                    self._answer(404, {}, b"")
                elif hub.faults.redirect_to is not None:
                    self._answer(302, {"Location": f"{hub.faults.redirect_to}{self.path}"}, b"")
                elif hub.faults.status:
                    status = hub.faults.status.pop(0)
                    extra = {"Retry-After": hub.faults.retry_after} if hub.faults.retry_after else {}
                    self._answer(status, extra, b"")
                else:
                    self._file(hub.files[name])

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            def _file(self, data: bytes) -> None:
                faults = hub.faults
                etag = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
                start, wanted = 0, self.headers.get("Range")
                if wanted and not faults.ignore_range and self.headers.get("If-Range", etag) == etag:
                    start = int(wanted.removeprefix("bytes=").rstrip("-"))
                    if start >= len(data):
                        self._answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
                        return
                    self.send_response(206)
                    claimed = start + 1 if faults.wrong_range else start
                    self.send_header("Content-Range", f"bytes {claimed}-{len(data) - 1}/{len(data)}")
                else:
                    self.send_response(200)
                if not faults.no_etag:
                    self.send_header("ETag", etag)
                if not faults.extra:
                    self.send_header("Content-Length", faults.length or str(len(data) - start))
                self.end_headers()
                body = data[start:] + faults.extra
                if faults.drop_after:
                    body = body[: faults.drop_after.pop(0)]
                self.wfile.write(body)

        return Handler
