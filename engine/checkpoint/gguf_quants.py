"""GGUF's tensor types: how many bytes a block takes, and how its values are restored to float32.

Layouts follow ggml's `block_*` structures: 32 weights share one float16 scale `d` (and, in Q4_1, one float16
minimum `m`). In the 4-bit types the low nibbles of the 16 bytes are weights 0–15 and the high nibbles 16–31.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

BLOCK = 32  # weights per block of the quantised types


class GgmlType(IntEnum):
    """The tensor types this program reads, with ggml's numbers."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q8_0 = 8
    BF16 = 30


# Only for messages: types that exist but are not read here. Numbers missing in the list were withdrawn.
UNREAD_TYPES = {
    6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S",
    23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0",
    35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


class Layout(NamedTuple):
    """A type's block: `weights` in `nbytes`, and the function from blocks [n, nbytes] to [n, weights]."""

    weights: int
    nbytes: int
    restore: Callable[[Bytes], Floats]


def dequantize(kind: GgmlType, data: Bytes) -> Floats:
    """Restore the weights of whole blocks: uint8 [any] to float32 [weights]."""
    layout = LAYOUTS[kind]
    return layout.restore(data.reshape(-1, layout.nbytes)).reshape(-1)


def _f32(blocks: Bytes) -> Floats:
    return blocks.view("<f4").astype(np.float32)


def _f16(blocks: Bytes) -> Floats:
    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    return (_nibbles(blocks[:, 2:]) - np.float32(8)) * _half(blocks, 0)


def _q4_1(blocks: Bytes) -> Floats:
    return _nibbles(blocks[:, 4:]) * _half(blocks, 0) + _half(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _half(blocks, 0)


def _half(blocks: Bytes, at: int) -> Floats:
    """The float16 at byte `at` of every block, as float32 [n, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Floats:
    """[n, 16] bytes to [n, 32] values 0–15: the low nibbles, then the high ones."""
    return np.concatenate((packed & 0x0F, packed >> 4), axis=1).astype(np.float32)


LAYOUTS: dict[GgmlType, Layout] = {
    GgmlType.F32: Layout(1, 4, _f32),
    GgmlType.F16: Layout(1, 2, _f16),
    GgmlType.BF16: Layout(1, 2, _bf16),
    GgmlType.Q4_0: Layout(BLOCK, 18, _q4_0),
    GgmlType.Q4_1: Layout(BLOCK, 20, _q4_1),
    GgmlType.Q8_0: Layout(BLOCK, 34, _q8_0),
}
