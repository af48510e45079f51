from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import files
from engine.errors import EngineError, FileError
from engine.files import open_to_read, replacing, set_aside, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_only_files_are_opened_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"x")
    for path, words in (
        (tmp_path / "pipe", "no ordinary file"),
        (Path(os.devnull), "no ordinary file"),
        (tmp_path, "directory"),
        (tmp_path / "missing", "No such file"),
        (tmp_path / "null\0", "no file can have this name"),
    ):
        with pytest.raises(OSError, match=words):
            open_to_read(path)
    with open_to_read(tmp_path / "file") as file:
        assert file.read() == b"x"


@given(data=st.binary(max_size=4096))
def test_bytes_come_back_as_written(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("w") / "file.bin"
    write_atomically(path, data)
    assert path.read_bytes() == data
    assert names(path.parent) == ["file.bin"]


def test_text_is_utf8_with_newlines_kept(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.txt", "naïve 漢字\r\nend\n")
    assert (tmp_path / "a.txt").read_bytes() == "naïve 漢字\r\nend\n".encode()


def test_missing_folders_are_made_and_old_content_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    write_atomically(path, "one")
    write_atomically(str(path), "two")
    assert path.read_text() == "two"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("old")
    real.chmod(0o600)
    link = tmp_path / "link.toml"
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "full"),
        (errno.EACCES, "lacks the permission"),
        (errno.EROFS, "can only be read"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_failing_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    path = tmp_path / "chat.json"
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError) as caught:
        write_atomically(path, "new")
    assert isinstance(caught.value, EngineError)
    assert "chat.json" in caught.value.what
    assert said in caught.value.why
    assert caught.value.action
    assert path.read_text() == "old"
    assert names(tmp_path) == ["chat.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_really_full_device_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def open_full(path: Any, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".tmp"):
            return real_open("/dev/full", os.O_WRONLY)
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", open_full)
    with pytest.raises(FileError, match="is full"):
        write_atomically(tmp_path / "a", b"x" * 100_000)
    assert names(tmp_path) == []


def test_a_failing_rename_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fail(_source: Any, _target: Any) -> None:
        raise PermissionError(errno.EACCES, "in use")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(FileError, match="permissions"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_file_in_the_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(FileError):
        write_atomically(tmp_path / "a" / "b", "x")


def test_a_file_system_without_directory_flush_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folder_flushes = os.fsync, []

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            folder_flushes.append(handle)
            raise OSError(errno.EINVAL, "no")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"
    assert folder_flushes or not Path("/proc/self/fd").exists()


def test_a_file_that_is_written_in_pieces_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"first ")
        assert path.read_text() == "old"
        file.write(b"second")
        file.seek(0)
        assert file.read(5) == b"first"
    assert path.read_text() == "first second"
    with pytest.raises(TypeError), replacing(path) as file:
        file.write("half")  # type: ignore[arg-type]
    assert path.read_text() == "first second"
    assert names(tmp_path) == ["a.zip"]


def test_set_aside_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for content in ("one", "two"):
        path.write_text(content)
        set_aside(path)
    assert names(tmp_path) == ["p.json.damaged-1", "p.json.damaged-2"]
    assert (tmp_path / "p.json.damaged-1").read_text() == "one"
    with pytest.raises(FileError, match="set aside"):
        set_aside(path)
