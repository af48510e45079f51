"""The safetensors container: an 8-byte length, a JSON header, then raw tensor bytes. Torch-free.

We read the header ourselves and the data with positioned reads into our own buffers: a mapping of a
90 GB checkpoint would be counted as this program's memory for as long as its pages stay cached.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from engine.errors import CheckpointError

ITEM_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
}
_MAX_HEADER = 100_000_000  # the format's own limit, against absurd allocations from a damaged length
_DAMAGED = "Download the file again, or copy it again from where it came."


@dataclass(frozen=True)
class TensorInfo:
    """Where one tensor lies: `file`, the absolute byte `offset` in it, and what the bytes are."""

    name: str
    dtype: str  # the format's name, e.g. "BF16"
    shape: tuple[int, ...]
    file: Path
    offset: int
    nbytes: int


def read_header(file: Path) -> dict[str, TensorInfo]:
    """The tensors of one safetensors file by name; reads only the header and the file's size.

    Raises:
        CheckpointError: the file is missing, unreadable, truncated, or its header is not a valid one.
    """
    try:
        with open(file, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            first = stream.read(8)
            length = int.from_bytes(first, "little")
            _check_kind(file, first)
            if size < 8 or length > min(_MAX_HEADER, size - 8):
                raise _damaged(file, f"it is {size:,} bytes long, too short for its own header")
            raw = stream.read(length)
    except FileNotFoundError:
        raise CheckpointError(
            f"The model file {file.name} is missing.",
            why=f"It is not in the folder {file.parent}.",
            action="Download the model again, or copy the missing file into that folder.",
        ) from None
    except OSError as error:
        raise CheckpointError(
            f"The model file {file.name} cannot be read.",
            why=f"The system says: {error.strerror or error}.",
            action="Check the disk and the file's permissions.",
        ) from error
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError too
        raise _damaged(file, "its header is not readable as JSON") from None
    if not isinstance(header, dict):
        raise _damaged(file, "its header is not a table of tensors")
    header.pop("__metadata__", None)
    start = 8 + length
    tensors = {name: _entry(file, name, entry, start) for name, entry in header.items()}
    end = max((info.offset + info.nbytes for info in tensors.values()), default=start)
    if end > size:
        raise _damaged(file, f"it ends {end - size:,} bytes too early (an unfinished download or copy)")
    if end < size:
        raise _damaged(file, f"{size - end:,} bytes at its end belong to no tensor")
    return tensors


def _check_kind(file: Path, first: bytes) -> None:
    """Refuse what is often found under a safetensors file's name; `first` are the file's first 8 bytes.

    As a header's length both would be absurd, so no real safetensors file is refused.
    """
    if first.startswith(b"GGUF"):
        raise CheckpointError(
            f"{file.name} is a GGUF file under another name.",
            why=f"The file in {file.parent} begins with GGUF's mark; this version does not run GGUF files.",
            action="Choose a folder with a Mixtral model in safetensors format.",
        )
    if first == b"version ":  # of git-lfs
        raise CheckpointError(
            f"The model file {file.name} was not downloaded.",
            why=f"In {file.parent} there is only a pointer to it, as git makes without git-lfs.",
            action="Run “git lfs pull” in that folder, or download the file itself.",
        )


def _entry(file: Path, name: str, entry: object, start: int) -> TensorInfo:
    """One checked header entry; `start` is where the data begins in the file."""
    if not isinstance(entry, dict):
        raise _damaged(file, f"its entry for {name} is not a table")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise _damaged(file, f"{name} has the unknown number format {dtype!r}")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise _damaged(file, f"the shape or the position of {name} is not a list of sizes")
    begin, end = offsets
    nbytes = math.prod(shape) * ITEM_BYTES[dtype]
    if end - begin != nbytes:
        raise _damaged(file, f"{name} should take {nbytes:,} bytes but has {end - begin:,}")
    return TensorInfo(name, dtype, tuple(shape), file, start + begin, nbytes)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _damaged(file: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"The model file {file.name} is damaged.",
        why=f"In {file.parent}: {why}.",
        action=_DAMAGED,
    )
