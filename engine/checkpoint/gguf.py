"""Read GGUF files (versions 2 and 3): metadata, the table of tensors, and tensors restored to float32.

The format: magic, version, counts, metadata key–value pairs, tensor infos, then, aligned, the tensor data.
Written from the format's public description (ggml's docs/gguf.md). Numpy only; nothing is read from the data
part before a tensor is asked for.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, TypeVar

import numpy as np

from engine.checkpoint.gguf_header import Cursor, Scalar, Value, damaged
from engine.checkpoint.gguf_quants import (
    Bytes,
    Floats,
    GgmlType,
    UnreadType,
    block_size,
    dequantize,
    tensor_type,
)
from engine.errors import CheckpointError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4  # ggml's GGML_MAX_DIMS

_KEY_MIN = 13  # bytes of the smallest key–value pair: key length, value type, a one-byte value
_INFO_MIN = 24  # bytes of the smallest tensor info: name length, dimensions, type, offset

S = TypeVar("S", int, float, bool, str)


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the table. `shape` is outermost first, as in torch (the file has it the other way).

    `offset` counts from the start of the file; the data is `nbytes` long. A tensor of an `UnreadType` can be
    listed but not read.
    """

    name: str
    shape: tuple[int, ...]
    kind: GgmlType | UnreadType
    offset: int
    nbytes: int


class GgufFile:
    """An open GGUF file. Use it in a `with` block: the file stays mapped until `close`."""

    def __init__(self, path: Path | str) -> None:
        """Map the file and parse its head. Raises `CheckpointError` if it cannot be what it claims."""
        self.path = Path(path)
        self._map = _map_file(self.path)
        try:
            self.version, self.metadata, self.tensors = _parse(self._map, self.path)
        except BaseException:
            self._map.close()
            raise

    def close(self) -> None:
        """Unmap the file; tensors that were read stay valid."""
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, name: str) -> Floats:
        """The tensor `name` as float32 in its shape.

        Raises `CheckpointError` if there is none, or if its type is not read here.
        """
        info = self._info(name)
        if isinstance(info.kind, UnreadType):
            raise _unread(self.path, name, info.kind.name)
        return dequantize(info.kind, self._data(info.offset, info.nbytes)).reshape(info.shape)

    def read_blocks(self, name: str, index: int = 0) -> Bytes:
        """A matrix of the tensor `name` as it lies in the file: uint8 [rows, blocks in a row, block bytes].

        A tensor of three dimensions is a list of matrices, of which `index` is read alone. Raises
        `CheckpointError` if there is no such tensor or matrix.
        """
        info = self._info(name)
        matrices = math.prod(info.shape[:-2])
        if len(info.shape) < 2 or not 0 <= index < matrices:
            raise damaged(self.path, f"The tensor “{name}” of shape {info.shape} has no matrix {index}.")
        weights, nbytes = block_size(info.kind)
        rows, cols = info.shape[-2:]
        size = info.nbytes // matrices
        return self._data(info.offset + index * size, size).reshape(rows, cols // weights, nbytes)

    def _info(self, name: str) -> TensorInfo:
        info = self.tensors.get(name)
        if info is None:
            raise damaged(self.path, f"It has no tensor “{name}”.")
        return info

    def _data(self, offset: int, nbytes: int) -> Bytes:
        """A copy, which outlives the map."""
        return np.frombuffer(self._map[offset : offset + nbytes], np.uint8)

    def get(self, key: str, kind: type[S]) -> S:
        """The metadata value `key`, which must be of type `kind`; `CheckpointError` otherwise."""
        value = self.metadata.get(key)
        if type(value) is not kind:
            raise self._bad_value(key, kind.__name__, value)
        return value

    def get_list(self, key: str, kind: type[S]) -> list[S]:
        """The metadata list `key`, whose elements must all be of type `kind`."""
        value = self.metadata.get(key)
        if not isinstance(value, list):
            raise self._bad_value(key, f"list of {kind.__name__}", value)
        items: list[S] = [item for item in value if type(item) is kind]
        if len(items) != len(value):
            raise self._bad_value(key, f"list of {kind.__name__}", value)
        return items

    def _bad_value(self, key: str, wanted: str, value: Value | None) -> CheckpointError:
        found = "is missing" if value is None else f"is a {type(value).__name__}"
        return damaged(self.path, f"Its metadata entry “{key}” {found}; a {wanted} is needed.")


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:  # mmap refuses an empty file
                raise damaged(path, "It is empty.")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CheckpointError(
            f"The model file {path} cannot be read.",
            why=f"The system says: {error.strerror or error}.",
            action="Check that the file exists and that you may read it.",
        ) from error


def _unread(path: Path, tensor: str, kind: str) -> CheckpointError:
    return CheckpointError(
        f"{path.name} is stored in a format this program does not read.",
        why=f"The tensor “{tensor}” has the type {kind}.",
        action=f"Use a file whose types are among {', '.join(kind.name for kind in GgmlType)}.",
    )


def _parse(data: mmap.mmap, path: Path) -> tuple[int, Mapping[str, Value], Mapping[str, TensorInfo]]:
    cursor = Cursor(data, path)
    if cursor.take(min(len(MAGIC), cursor.left)) != MAGIC:
        raise CheckpointError(
            f"{path.name} is not a GGUF file.",
            why="It does not start with the letters GGUF.",
            action="Choose a file that ends in .gguf, or download it again.",
        )
    version = cursor.u32()
    if version not in VERSIONS:
        swapped = version & 0xFFFF == 0
        raise CheckpointError(
            f"{path.name} is a GGUF file of a kind this program does not read.",
            why="It is big-endian." if swapped else f"It has version {version}; versions 2 and 3 are read.",
            action="Use a file made for this kind of machine by a current converter.",
        )
    tensors = cursor.count("tensors", _INFO_MIN)
    metadata = _metadata(cursor, cursor.count("metadata entries", _KEY_MIN), path)
    alignment = _alignment(metadata, path)
    infos = [_Info.parse(cursor, path) for _ in range(tensors)]
    start = -(-cursor.position // alignment) * alignment
    table: dict[str, TensorInfo] = {}
    for info in infos:
        if info.name in table:
            raise damaged(path, f"It has two tensors called “{info.name}”.")
        table[info.name] = info.locate(start, alignment, len(data), path)
    return version, MappingProxyType(metadata), MappingProxyType(table)


def _metadata(cursor: Cursor, count: int, path: Path) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(count):
        key = cursor.string()
        if key in metadata:
            raise damaged(path, f"It has the metadata entry “{key}” twice.")
        metadata[key] = cursor.value()
    return metadata


def _alignment(metadata: Mapping[str, Value], path: Path) -> int:
    alignment: Value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not _is_power_of_two(alignment):
        raise damaged(path, f"Its data alignment is {alignment!r}, which is not a power of two.")
    assert isinstance(alignment, int)  # for the type checker
    return alignment


def _is_power_of_two(value: Value | Scalar) -> bool:
    return type(value) is int and value > 0 and value & (value - 1) == 0


@dataclass(frozen=True)
class _Info:
    """A tensor info as it stands in the file: the offset still counts from the start of the data part."""

    name: str
    shape: tuple[int, ...]
    kind: GgmlType | UnreadType
    offset: int

    @staticmethod
    def parse(cursor: Cursor, path: Path) -> _Info:
        name = cursor.string()
        dimensions = cursor.u32()
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise damaged(path, f"The tensor “{name}” claims {dimensions} dimensions.")
        shape = tuple(cursor.u64() for _ in range(dimensions))[::-1]
        number = cursor.u32()
        kind = tensor_type(number)
        if kind is None:
            raise _unread(path, name, str(number))
        return _Info(name, shape, kind, cursor.u64())

    def locate(self, start: int, alignment: int, end: int, path: Path) -> TensorInfo:
        """Check shape and place against the file of `end` bytes whose data part begins at `start`."""
        weights, block = block_size(self.kind)
        if 0 in self.shape or self.shape[-1] % weights:
            raise damaged(path, f"The tensor “{self.name}” has the impossible shape {self.shape}.")
        if self.offset % alignment:
            raise damaged(
                path, f"The tensor “{self.name}” does not begin at a multiple of {alignment} bytes."
            )
        nbytes = math.prod(self.shape) // weights * block
        offset = start + self.offset
        if offset + nbytes > end:
            raise damaged(
                path,
                f"The tensor “{self.name}” ends at byte {offset + nbytes}, but the file ends at byte {end}.",
            )
        return TensorInfo(self.name, self.shape, self.kind, offset, nbytes)
