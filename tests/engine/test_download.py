"""Downloading one file from a server that drops connections, forgets, changes its mind, or lies."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.download import Patience, RemoteFile, download_file
from engine.errors import Cancelled, DownloadError, FileError
from engine.partfile import Digest, PartFile
from engine.progress import CancelToken
from tests.engine.hub_server import HubServer

NAME = "model.safetensors"
DATA = bytes(range(256)) * 12_000  # three blocks of reading
QUICK = Patience(attempts=3, first_wait=0.001, longest_wait=0.01, timeout=5)


@pytest.fixture
def server() -> Iterator[HubServer]:
    with HubServer({NAME: DATA}) as running:
        yield running


def sha256(data: bytes) -> Digest:
    return Digest("sha256", hashlib.sha256(data).hexdigest())


def download(
    server: HubServer,
    folder: Path,
    *,
    data: bytes = DATA,
    cancel: CancelToken | None = None,
    patience: Patience = QUICK,
    headers: dict[str, str] | None = None,
) -> list[int]:
    """Download the file that should be `data`; what was reported."""
    reports: list[int] = []

    def report(here: int) -> None:
        reports.append(here)
        if cancel is not None and here >= 1_000_000:
            cancel.cancel()

    file = RemoteFile(NAME, server.url(NAME), len(data), sha256(data))
    token = cancel or CancelToken()
    download_file(file, folder, headers=headers or {}, report=report, cancel=token, patience=patience)
    return reports


def assert_complete(folder: Path, data: bytes = DATA) -> None:
    assert (folder / NAME).read_bytes() == data
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_a_file_arrives_and_nothing_else_stays(server: HubServer, tmp_path: Path) -> None:
    reports = download(server, tmp_path / "new" / "folder")
    assert_complete(tmp_path / "new" / "folder")
    assert reports[0] == 0
    assert reports[-1] == len(DATA)
    assert reports == sorted(reports)
    [request] = server.requests
    assert request.range is None
    assert request.headers["accept-encoding"] == "identity"


def test_a_complete_file_is_not_asked_for_again(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(DATA)
    assert download(server, tmp_path) == [len(DATA)]
    assert server.requests == []


def test_a_file_with_other_content_is_replaced(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(DATA[::-1])
    download(server, tmp_path)
    assert_complete(tmp_path)


def test_dropped_connections_are_resumed_where_they_stopped(server: HubServer, tmp_path: Path) -> None:
    server.faults.drop_after = [1_500_000, 700_000]
    download(server, tmp_path)
    assert_complete(tmp_path)
    assert [request.range for request in server.requests] == [None, "bytes=1500000-", "bytes=2200000-"]
    assert server.requests[1].headers["if-range"].startswith('"')


def test_every_drop_may_bring_a_little_and_patience_never_ends(server: HubServer, tmp_path: Path) -> None:
    """Many more drops than attempts: only fruitless attempts count."""
    server.faults.drop_after = [150_000] * 20
    download(server, tmp_path)
    assert_complete(tmp_path)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=2000),
    drops=st.lists(st.integers(0, 900), max_size=5),
    no_etag=st.booleans(),
    ignore_range=st.booleans(),
)
def test_whatever_is_dropped_the_content_is_right(
    tmp_path_factory: pytest.TempPathFactory,
    data: bytes,
    drops: list[int],
    no_etag: bool,
    ignore_range: bool,
) -> None:
    folder = tmp_path_factory.mktemp("download")
    with HubServer({NAME: data}) as server:
        server.faults.drop_after = list(drops)
        server.faults.no_etag, server.faults.ignore_range = no_etag, ignore_range
        download(server, folder, data=data, patience=Patience(attempts=10, first_wait=0, longest_wait=0))
    assert_complete(folder, data)


def test_a_cancelled_download_keeps_its_part_and_goes_on(server: HubServer, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        download(server, tmp_path, cancel=CancelToken())
    part = tmp_path / f"{NAME}.part"
    size = part.stat().st_size
    assert 0 < size < len(DATA)
    assert not (tmp_path / NAME).exists()
    reports = download(server, tmp_path)
    assert reports[0] == size
    assert server.requests[-1].range == f"bytes={size}-"
    assert_complete(tmp_path)


def test_a_part_without_etag_is_resumed_and_checked(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:1000])
    download(server, tmp_path)
    assert server.requests[0].range == "bytes=1000-"
    assert "if-range" not in server.requests[0].headers
    assert_complete(tmp_path)


def test_a_part_with_other_content_costs_one_more_download(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 1000)
    download(server, tmp_path)
    assert [request.range for request in server.requests] == ["bytes=1000-", None]
    assert_complete(tmp_path)


def test_a_part_that_is_already_whole_needs_no_request(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA)
    download(server, tmp_path)
    assert server.requests == []
    assert_complete(tmp_path)


def test_a_part_that_is_too_long_is_begun_again(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA + b"more")
    download(server, tmp_path)
    assert_complete(tmp_path)


def test_a_server_without_ranges_sends_the_file_anew(server: HubServer, tmp_path: Path) -> None:
    server.faults.ignore_range = True
    server.faults.drop_after = [1_500_000]
    download(server, tmp_path)
    assert_complete(tmp_path)
    assert len(server.requests) == 2


def test_a_changed_file_is_not_mixed_with_the_old_part(server: HubServer, tmp_path: Path) -> None:
    """The ETag of the part's first bytes goes back as If-Range; the new version then comes whole."""
    server.files[NAME] = DATA[::-1]
    with pytest.raises(Cancelled):
        download(server, tmp_path, cancel=CancelToken())
    server.files[NAME] = DATA
    download(server, tmp_path)
    assert "if-range" in server.requests[-1].headers
    assert len(server.requests) == 2
    assert_complete(tmp_path)


def test_a_range_that_starts_elsewhere_is_not_used(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:1000])
    server.faults.wrong_range = True
    download(server, tmp_path)
    assert [request.range for request in server.requests] == ["bytes=1000-", None]
    assert_complete(tmp_path)


def test_416_begins_again(server: HubServer, tmp_path: Path) -> None:
    """The server's file is shorter than the part says, then grows to the announced one."""
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:1000])
    server.files[NAME] = DATA[:500]
    with pytest.raises(DownloadError, match="announced"):
        download(server, tmp_path)
    assert server.requests[0].range == "bytes=1000-"
    server.files[NAME] = DATA
    download(server, tmp_path)
    assert_complete(tmp_path)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_failures_are_waited_out(server: HubServer, tmp_path: Path, status: int) -> None:
    server.faults.status = [status, status]
    server.faults.retry_after = "0"
    download(server, tmp_path)
    assert len(server.requests) == 3
    assert_complete(tmp_path)


def test_patience_ends_with_the_reason_and_the_part_stays(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:1000])
    server.faults.status = [503] * 10
    with pytest.raises(DownloadError, match=r"3 attempts.*503.*goes on from where it stopped"):
        download(server, tmp_path)
    assert len(server.requests) == QUICK.attempts
    assert (tmp_path / f"{NAME}.part").stat().st_size == 1000


def test_the_servers_wish_to_wait_can_be_cancelled(server: HubServer, tmp_path: Path) -> None:
    server.faults.status = [429] * 10
    server.faults.retry_after = "100"
    token = CancelToken()
    file = RemoteFile(NAME, server.url(NAME), len(DATA), sha256(DATA))

    class Server429(CancelToken):
        """Raised by the time the first answer has come."""

        @property
        def cancelled(self) -> bool:
            return bool(server.requests)

        def raise_if_cancelled(self) -> None:
            if self.cancelled:
                token.cancel()
            token.raise_if_cancelled()

    with pytest.raises(Cancelled):
        download_file(file, tmp_path, headers={}, report=lambda _: None, cancel=Server429(), patience=QUICK)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "message"), [(401, "token"), (403, "token"), (404, "no file"), (410, "410")]
)
def test_final_answers_are_not_repeated(server: HubServer, tmp_path: Path, status: int, message: str) -> None:
    server.faults.status = [status]
    with pytest.raises(DownloadError, match=message):
        download(server, tmp_path)
    assert len(server.requests) == 1


def test_nobody_listening_is_an_error_with_the_cause(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    file = RemoteFile(NAME, f"http://127.0.0.1:{port}/x", 10, sha256(b""))
    with pytest.raises(DownloadError, match="refused"):
        download_file(file, tmp_path, headers={}, report=lambda _: None, cancel=CancelToken(), patience=QUICK)


def test_other_content_is_refused_and_removed(server: HubServer, tmp_path: Path) -> None:
    server.files[NAME] = DATA[:-1] + b"x"
    with pytest.raises(DownloadError, match="checksum"):
        download(server, tmp_path)
    assert not (tmp_path / NAME).exists()
    assert (tmp_path / f"{NAME}.part").stat().st_size == 0
    assert len(server.requests) == 1


def test_more_bytes_than_announced_are_refused(server: HubServer, tmp_path: Path) -> None:
    server.faults.extra = b"more"
    with pytest.raises(DownloadError, match="announced"):
        download(server, tmp_path)
    assert not (tmp_path / NAME).exists()


def test_a_length_that_is_no_number_says_nothing(server: HubServer, tmp_path: Path) -> None:
    server.faults.length = "many"
    download(server, tmp_path)
    assert_complete(tmp_path)


@pytest.mark.parametrize("etag", [b"\xff\xfe", b'"a"\r\n\r\nb'])
def test_a_damaged_note_of_the_version_costs_nothing(server: HubServer, tmp_path: Path, etag: bytes) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(DATA[:1000])
    (tmp_path / f"{NAME}.part.etag").write_bytes(etag)
    download(server, tmp_path)
    assert_complete(tmp_path)
    assert "if-range" not in server.requests[0].headers


def test_the_token_is_not_sent_to_another_server(server: HubServer, tmp_path: Path) -> None:
    server.faults.drop_after = [1_500_000]
    with HubServer({NAME: DATA}) as front:
        front.faults.redirect_to = server.address
        download(front, tmp_path, headers={"Authorization": "Bearer secret"})
        assert all(request.headers["authorization"] == "Bearer secret" for request in front.requests)
    assert_complete(tmp_path)
    assert len(server.requests) == 2
    assert all("authorization" not in request.headers for request in server.requests)
    assert server.requests[1].range == "bytes=1500000-"  # other headers do follow


def test_a_full_disk_says_so_and_keeps_what_was_written(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk(io.FileIO):
        """Takes one block."""

        def write(self, block: object) -> int:
            if self.tell() > 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(block)  # type: ignore[arg-type]

    def open_full(path: Path) -> io.FileIO:
        return FullDisk(path, "a+")

    with monkeypatch.context() as patch:
        patch.setattr("engine.partfile.open_part", open_full)
        with pytest.raises(FileError, match=r"full.*Free some space"):
            download(server, tmp_path)
    size = (tmp_path / f"{NAME}.part").stat().st_size
    assert 0 < size < len(DATA)
    download(server, tmp_path)
    assert server.requests[-1].range == f"bytes={size}-"
    assert_complete(tmp_path)


def test_a_folder_that_cannot_be_written_is_an_error(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match=NAME):
        download(server, tmp_path / "file")


@given(st.binary(max_size=300), st.integers(0, 300))
def test_git_names_are_checked_too(tmp_path_factory: pytest.TempPathFactory, data: bytes, split: int) -> None:
    """The name of the empty file and of "hello" are git's, from its manual pages' examples."""
    known = {
        b"": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        b"hello\n": "ce013625030ba8dba906f756967f9e9ca394464a",
    }
    for content, name in {**known, data: hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}.items():
        target = tmp_path_factory.mktemp("git") / "config.json"
        with PartFile(target, len(content), Digest("git-sha1", name), CancelToken()) as part:
            part.append(content[:split])
        with PartFile(target, len(content), Digest("git-sha1", name), CancelToken()) as part:
            part.append(content[split:])
            assert part.complete
            assert part.matches
