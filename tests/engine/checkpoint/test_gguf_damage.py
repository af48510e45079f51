"""GGUF files that are damaged, cut short, or cannot be right: each is refused with the reason."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint.gguf import GgufFile
from engine.errors import CheckpointError

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def open_bytes(folder: Path, data: bytes) -> None:
    """Parse `data` as a file and read every tensor."""
    path = folder / "damaged.gguf"
    path.write_bytes(data)
    with GgufFile(path) as file:
        for name in file.tensors:
            file.read(name)


def test_every_truncation_is_noticed(tmp_path: Path, small_file: bytes) -> None:
    for length in range(len(small_file)):
        with pytest.raises(CheckpointError) as caught:
            open_bytes(tmp_path, small_file[:length])
        assert caught.value.action


@SHARED_FOLDER
@given(st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # damaged scales overflow
def test_damage_is_an_error_or_harmless(tmp_path: Path, small_file: bytes, data: st.DataObject) -> None:
    """Overwritten bytes never lead to another exception than CheckpointError, nor to a crash."""
    at = data.draw(st.integers(0, len(small_file) - 1))
    patch = data.draw(st.binary(min_size=1, max_size=9))
    damaged = bytearray(small_file)
    damaged[at : at + len(patch)] = patch[: len(small_file) - at]
    with suppress(CheckpointError):
        open_bytes(tmp_path, bytes(damaged))


@SHARED_FOLDER
@given(st.binary(max_size=300))
def test_noise_after_the_magic_is_an_error(tmp_path: Path, noise: bytes) -> None:
    """An empty table is the only thing noise could spell, and that takes 16 zero bytes."""
    if noise[4:20] == bytes(16):
        return
    with pytest.raises(CheckpointError):
        open_bytes(tmp_path, b"GGUF" + noise)


def header(*, magic: bytes = b"GGUF", version: int = 3, tensors: int = 0, entries: int = 0) -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, entries)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(shape: tuple[int, ...], kind: int = 0, offset: int = 0, name: bytes = b"t") -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


HUGE = 2**62
BAD_FILES = {
    "another magic": (header(magic=b"GGML"), "not a GGUF file"),
    "version 1": (header(version=1), "version 1"),
    "big-endian": (header(version=3 << 24), "big-endian"),
    "more tensors than bytes": (header(tensors=HUGE), f"{HUGE} tensors"),
    "more entries than bytes": (header(entries=HUGE), f"{HUGE} metadata entries"),
    "a huge key": (header(entries=1) + struct.pack("<Q", HUGE) + bytes(40), "in the middle"),
    "a huge list": (
        header(entries=1) + text(b"k") + struct.pack("<IIQ", 9, 4, HUGE),
        f"{HUGE} numbers in a list",
    ),
    "a huge list of texts": (
        header(entries=1) + text(b"k") + struct.pack("<IIQ", 9, 8, HUGE),
        f"{HUGE} texts in a list",
    ),
    "a list of lists": (header(entries=1) + text(b"k") + struct.pack("<IIQ", 9, 9, 1), "list of lists"),
    "an unknown value type": (header(entries=1) + text(b"k") + struct.pack("<IQ", 13, 0), "unknown type 13"),
    "invalid UTF-8": (header(entries=1) + text(b"\xff") + struct.pack("<IQ", 10, 0), "UTF-8"),
    "an entry twice": (header(entries=2) + 2 * (text(b"k") + struct.pack("<IQ", 10, 0)), "“k” twice"),
    "alignment 0": (
        header(entries=1) + text(b"general.alignment") + struct.pack("<IQ", 10, 0),
        "alignment is 0",
    ),
    "alignment 48": (
        header(entries=1) + text(b"general.alignment") + struct.pack("<IQ", 10, 48),
        "alignment is 48",
    ),
    "alignment of another type": (
        header(entries=1) + text(b"general.alignment") + struct.pack("<Id", 12, 32.0),
        r"alignment is 32\.0",
    ),
    "five dimensions": (header(tensors=1) + tensor((1, 1, 1, 1, 1)), "5 dimensions"),
    "no dimensions": (header(tensors=1) + tensor(()) + bytes(64), "0 dimensions"),
    "a type that is not read": (header(tensors=1) + tensor((256,), kind=14) + bytes(512), "Q6_K"),
    "a type that does not exist": (header(tensors=1) + tensor((256,), kind=99) + bytes(512), "type 99"),
    "part of a block": (header(tensors=1) + tensor((33,), kind=2) + bytes(512), "impossible shape"),
    "an empty dimension": (header(tensors=1) + tensor((4, 0)) + bytes(512), "impossible shape"),
    "an offset between": (header(tensors=1) + tensor((4,), offset=8) + bytes(512), "multiple of 32"),
    "an offset behind the end": (header(tensors=1) + tensor((4,), offset=2**40) + bytes(512), "file ends"),
    "more weights than bytes": (header(tensors=1) + tensor((HUGE, HUGE)) + bytes(512), "file ends"),
    "a name twice": (header(tensors=2) + 2 * tensor((4,)) + bytes(512), "two tensors called “t”"),
}


@pytest.mark.parametrize(("data", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_impossible_files_are_refused_with_the_reason(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        open_bytes(tmp_path, data)


def test_an_empty_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="empty"):
        open_bytes(tmp_path, b"")
    with pytest.raises(CheckpointError, match="cannot be read"):
        GgufFile(tmp_path / "none.gguf")


def test_a_refused_file_is_not_kept_open(tmp_path: Path) -> None:
    """A leaked map would keep the file from being replaced on Windows; a resource warning fails the test."""
    with pytest.raises(CheckpointError):
        open_bytes(tmp_path, header(tensors=HUGE))
    (tmp_path / "damaged.gguf").unlink()
