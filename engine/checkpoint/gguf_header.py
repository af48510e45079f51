"""Parsing the head of a GGUF file: little-endian numbers, strings, metadata values.

Every length is checked against the bytes that are left before anything of that length is made, so that a
damaged file can neither crash the program nor make it allocate what the file cannot fill.
"""

from __future__ import annotations

import mmap
from enum import IntEnum
from pathlib import Path

import numpy as np

from engine.errors import CheckpointError

Scalar = int | float | bool | str
Value = Scalar | list[Scalar]


class ValueType(IntEnum):
    """GGUF's types of metadata values, with the format's numbers."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_NUMBERS = {
    ValueType.UINT8: "<u1", ValueType.INT8: "<i1", ValueType.UINT16: "<u2", ValueType.INT16: "<i2",
    ValueType.UINT32: "<u4", ValueType.INT32: "<i4", ValueType.UINT64: "<u8", ValueType.INT64: "<i8",
    ValueType.FLOAT32: "<f4", ValueType.FLOAT64: "<f8",
}  # fmt: skip
_STRING_MIN = 8  # a string is its length in 8 bytes, then the bytes


def damaged(path: Path, why: str) -> CheckpointError:
    """The error for a file whose content cannot be right."""
    return CheckpointError(
        f"The model file {path.name} is damaged.", why=why, action="Download or copy the file again."
    )


class Cursor:
    """Reads values one after the other from a mapped file; raises `CheckpointError` at its end.

    It copies what it reads (slices of a map are bytes): views would keep the file open while an error lives.
    """

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._path = path
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return len(self._data) - self.position

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > self.left:
            raise damaged(
                self._path, f"It ends at byte {len(self._data)}, in the middle of its table of contents."
            )
        start = self.position
        self.position += count
        return self._data[start : self.position]

    def u32(self) -> int:
        """An unsigned 32-bit number."""
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        """An unsigned 64-bit number."""
        return int.from_bytes(self.take(8), "little")

    def count(self, what: str, least: int) -> int:
        """How many `what` follow; impossible if each takes at least `least` bytes and they do not fit."""
        number = self.u64()
        if number * least > self.left:
            raise damaged(self._path, f"It claims {number} {what}, more than the file has room for.")
        return number

    def string(self) -> str:
        """Length and UTF-8 bytes."""
        data = self.take(self.u64())
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise damaged(self._path, "A name or text in it is not valid UTF-8.") from error

    def value(self) -> Value:
        """One metadata value with its type in front."""
        kind = self._type()
        return self._array() if kind is ValueType.ARRAY else self._scalar(kind)

    def _type(self) -> ValueType:
        number = self.u32()
        try:
            return ValueType(number)
        except ValueError as error:
            raise damaged(self._path, f"It has a metadata value of the unknown type {number}.") from error

    def _scalar(self, kind: ValueType) -> Scalar:
        if kind is ValueType.STRING:
            return self.string()
        if kind is ValueType.BOOL:
            return self.take(1)[0] != 0
        dtype = np.dtype(_NUMBERS[kind])
        number: int | float = np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        return number

    def _array(self) -> list[Scalar]:
        kind = self._type()
        if kind is ValueType.ARRAY:
            raise damaged(self._path, "It has a list of lists in its metadata, which no known model uses.")
        if kind is ValueType.STRING:
            return [self.string() for _ in range(self.count("texts in a list", _STRING_MIN))]
        dtype = np.dtype("<u1" if kind is ValueType.BOOL else _NUMBERS[kind])
        data = self.take(self.count("numbers in a list", dtype.itemsize) * dtype.itemsize)
        numbers = np.frombuffer(data, dtype)
        values: list[Scalar] = (numbers != 0 if kind is ValueType.BOOL else numbers).tolist()
        return values
