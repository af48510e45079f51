"""Download one file so that nothing is fetched twice: a `.part` file, HTTP Range, a hash while writing.

A broken connection and a cancelled or killed program leave the part; the next attempt hashes it and asks for
the rest (`Range`, and `If-Range` with the ETag that came with its first bytes). The file takes its name only
when its hash is right. Torch-free.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from engine.download_http import Interrupted, classify, classify_status, content_range, make_opener
from engine.errors import DownloadError
from engine.partfile import Digest, PartFile, file_matches
from engine.progress import CancelToken

_BLOCK = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: its name below the folder, address, size in bytes, and what it must hash to."""

    name: str
    url: str
    size: int
    digest: Digest


@dataclass(frozen=True)
class Patience:
    """How long to keep trying. Only attempts that bring no new byte count; times in seconds."""

    attempts: int = 6
    first_wait: float = 1.0  # doubled after every fruitless attempt
    longest_wait: float = 30.0
    timeout: float = 15.0  # without a byte


def download_file(
    file: RemoteFile,
    folder: Path,
    *,
    headers: Mapping[str, str],
    report: Callable[[int], None],
    cancel: CancelToken,
    patience: Patience = Patience(),
) -> None:
    """Bring `file` into `folder`; if it is there already, only its hash is checked.

    `report` is told how many of the file's bytes are here. Raises `DownloadError` when trying on is useless,
    `FileError` if the disk refuses, `Cancelled`; the part stays except when its content is wrong.
    """
    target = folder / file.name
    if target.is_file() and file_matches(target, file.size, file.digest, cancel):
        report(file.size)
        return
    transfer = _Transfer(file, headers, report, cancel, patience)
    with PartFile(target, file.size, file.digest, cancel) as part:
        transfer.run(part)


class _Transfer:
    """The attempts at one file."""

    def __init__(
        self,
        file: RemoteFile,
        headers: Mapping[str, str],
        report: Callable[[int], None],
        cancel: CancelToken,
        patience: Patience,
    ) -> None:
        self._file = file
        self._headers = headers
        self._report = report
        self._cancel = cancel
        self._patience = patience
        self._opener = make_opener()

    def run(self, part: PartFile) -> None:
        """Attempt until the file is complete and right, then give it its name."""
        self._report(part.length)
        while True:
            self._complete(part)
            if part.matches:
                part.publish()
                return
            resumed = part.resumed
            part.restart()
            if not resumed:  # every byte came just now, so another attempt would bring the same
                raise DownloadError(
                    f"“{self._file.name}” arrived with another content than announced.",
                    why="Its checksum is wrong. Something on the way changed it, or the server is at fault.",
                    action="Try again later, or over another connection.",
                )

    def _complete(self, part: PartFile) -> None:
        best, fruitless = part.length, 0
        while not part.complete:
            self._cancel.raise_if_cancelled()
            try:
                self._fetch_rest(part)
            except Interrupted as problem:
                fruitless = 0 if part.length > best else fruitless + 1
                best = max(best, part.length)
                if fruitless >= self._patience.attempts:
                    raise self._given_up(problem) from problem
                pause = self._patience.first_wait * 2 ** max(0, fruitless - 1)
                self._wait(max(min(pause, self._patience.longest_wait), problem.wait))

    def _fetch_rest(self, part: PartFile) -> None:
        """One request; returns when the part is complete, raises `Interrupted` to be called again."""
        try:
            with self._opener.open(self._request(part), timeout=self._patience.timeout) as response:
                self._place(part, response)
                self._copy(part, response)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # the part does not fit what the server has
                part.restart()
                raise Interrupted("the server refused to go on from where it stopped") from error
            raise classify_status(error, self._file.name) from error
        except (OSError, HTTPException) as error:  # the disk's FileError is neither
            raise classify(error, self._file.name) from error
        if not part.complete:
            raise Interrupted("the connection ended early")

    def _request(self, part: PartFile) -> urllib.request.Request:
        # Compression in transit would make byte positions meaningless.
        request = urllib.request.Request(
            self._file.url, headers={**self._headers, "Accept-Encoding": "identity"}
        )
        if part.length > 0:
            request.add_header("Range", f"bytes={part.length}-")
            if part.etag:
                request.add_header("If-Range", part.etag)
        return request

    def _place(self, part: PartFile, response: HTTPResponse) -> None:
        """See to it that the answer's bytes belong at the end of the part, or start it anew."""
        etag = response.headers.get("ETag", "")
        if response.status == 206:
            place = content_range(response.headers)
            changed = bool(etag and part.etag and etag != part.etag)
            if place != (part.length, self._file.size) or changed:
                part.restart()
                raise Interrupted("the server's file is another version than the part that is here")
            return
        length = response.headers.get("Content-Length", "").strip()
        if length.isdecimal() and int(length) != self._file.size:
            raise self._other_size(f"{int(length):,}")
        if part.length > 0:  # the server does not resume, or If-Range told it that the file has changed
            part.restart()
        if etag and not etag.startswith("W/"):  # a weak one may not be used with If-Range
            part.remember_etag(etag)

    def _copy(self, part: PartFile, response: HTTPResponse) -> None:
        while block := response.read(_BLOCK):
            self._cancel.raise_if_cancelled()
            if part.length + len(block) > self._file.size:
                part.restart()
                raise self._other_size("more")
            part.append(block)
            self._report(part.length)

    def _wait(self, seconds: float) -> None:
        """Sleep, but not longer than a tenth of a second after the user cancels."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._cancel.raise_if_cancelled()
            time.sleep(min(left, 0.1))

    def _given_up(self, problem: Interrupted) -> DownloadError:
        return DownloadError(
            f"The download of “{self._file.name}” was interrupted.",
            why=f"After {self._patience.attempts} attempts: {problem}.",
            action="Check the internet connection and start again; it goes on from where it stopped.",
        )

    def _other_size(self, found: str) -> DownloadError:
        return DownloadError(
            f"“{self._file.name}” is not the file that was announced.",
            why=f"The server sends {found} bytes where {self._file.size:,} were announced.",
            action="Start the download again; it asks for the list of files anew.",
        )
