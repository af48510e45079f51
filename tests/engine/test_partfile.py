"""One download of a file at a time: the second is refused, and nothing but the first's end lets it in."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.download import RemoteFile, download_file
from engine.errors import Cancelled, DownloadError
from engine.file_lock import FileLock
from engine.partfile import Digest, PartFile
from engine.progress import CancelToken
from tests.engine.hub_server import HubServer

NAME = "model.safetensors"
DATA = bytes(range(256)) * 100
DIGEST = Digest("sha256", hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def server() -> Iterator[HubServer]:
    with HubServer({NAME: DATA}) as running:
        yield running


def download(server: HubServer, folder: Path) -> None:
    file = RemoteFile(NAME, server.url(NAME), len(DATA), DIGEST)
    download_file(file, folder, headers={}, report=lambda _: None, cancel=CancelToken())


def assert_complete(folder: Path) -> None:
    """It is there, and nothing else."""
    assert (folder / NAME).read_bytes() == DATA
    assert [path.name for path in folder.iterdir()] == [NAME]


def held_by_another(folder: Path) -> subprocess.Popen[str]:
    """A program that has begun to download the same file, and waits; it ends when its input does."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from engine.partfile import Digest, PartFile\n"
        "from engine.progress import CancelToken\n"
        "digest = Digest('sha256', sys.argv[3])\n"
        "with PartFile(Path(sys.argv[1]), int(sys.argv[2]), digest, CancelToken()) as part:\n"
        "    part.append(bytes(range(256)))\n"
        "    print('begun', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    arguments = [str(folder / NAME), str(len(DATA)), DIGEST.hexdigest]
    other = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "begun\n"
    return other


@pytest.mark.parametrize("killed", [False, True])
def test_what_another_program_is_downloading_is_left_to_it(
    server: HubServer, tmp_path: Path, killed: bool
) -> None:
    """Two that append to one part would spoil it. The lock ends with its program, however that ends."""
    with held_by_another(tmp_path) as other:
        with pytest.raises(DownloadError, match=r"already being downloaded.*Another.*ended"):
            download(server, tmp_path)
        assert server.requests == []
        assert (tmp_path / f"{NAME}.part").read_bytes() == DATA[:256]
        if killed:
            other.kill()
    download(server, tmp_path)
    assert server.requests[-1].range == "bytes=256-"
    assert_complete(tmp_path)


def test_one_program_does_not_download_a_file_twice_at_a_time_either(tmp_path: Path) -> None:
    target = tmp_path / NAME
    with PartFile(target, len(DATA), DIGEST, CancelToken()):
        with pytest.raises(DownloadError, match="already being downloaded"):
            PartFile(target, len(DATA), DIGEST, CancelToken())
        with PartFile(tmp_path / "other", len(DATA), DIGEST, CancelToken()):
            pass
    with PartFile(target, len(DATA), DIGEST, CancelToken()):
        pass


def test_a_part_that_cannot_be_begun_is_not_locked(tmp_path: Path) -> None:
    target, cancel = tmp_path / NAME, CancelToken()
    (tmp_path / f"{NAME}.part").write_bytes(DATA)
    cancel.cancel()
    with pytest.raises(Cancelled):
        PartFile(target, len(DATA), DIGEST, cancel)
    with PartFile(target, len(DATA), DIGEST, CancelToken()) as part:
        assert part.complete


def test_where_there_are_no_locks_files_arrive_all_the_same(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: FileLock) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "acquire", refuse)
    download(server, tmp_path)
    assert_complete(tmp_path)
