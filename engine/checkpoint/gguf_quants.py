"""GGUF's tensor types: how many bytes a block takes, and how its values are restored to float32.

Layouts follow ggml's `block_*` structures. In Q4_0, Q4_1 and Q8_0, 32 weights share one float16 scale `d`
(and, in Q4_1, one float16 minimum `m`); the low nibbles of the 16 bytes are weights 0–15 and the high
ones weights 16–31. In Q4_K, 256 weights are 8 groups of 32, each with a 6-bit scale and a 6-bit minimum,
which count in the block's two float16 numbers `d` and `dmin`; 32 bytes hold two groups, one in the low
nibbles, the next in the high ones.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

BLOCK = 32  # weights per block of Q4_0, Q4_1 and Q8_0
SUPER_BLOCK = 256  # weights per block of Q4_K
_GROUPS = SUPER_BLOCK // BLOCK


class GgmlType(IntEnum):
    """The tensor types this program reads, with ggml's numbers."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q8_0 = 8
    Q4_K = 12
    BF16 = 30


class UnreadType(NamedTuple):
    """A type that exists but is not read here: its name, and its block of `weights` in `nbytes`."""

    name: str
    weights: int
    nbytes: int


# With ggml's numbers. The sizes let a file with such a tensor be opened for its other tensors.
UNREAD_TYPES = {
    6: UnreadType("Q5_0", 32, 22), 7: UnreadType("Q5_1", 32, 24), 9: UnreadType("Q8_1", 32, 36),
    10: UnreadType("Q2_K", 256, 84), 11: UnreadType("Q3_K", 256, 110), 13: UnreadType("Q5_K", 256, 176),
    14: UnreadType("Q6_K", 256, 210), 15: UnreadType("Q8_K", 256, 292), 16: UnreadType("IQ2_XXS", 256, 66),
    17: UnreadType("IQ2_XS", 256, 74), 18: UnreadType("IQ3_XXS", 256, 98), 19: UnreadType("IQ1_S", 256, 50),
    20: UnreadType("IQ4_NL", 32, 18), 21: UnreadType("IQ3_S", 256, 110), 22: UnreadType("IQ2_S", 256, 82),
    23: UnreadType("IQ4_XS", 256, 136), 24: UnreadType("I8", 1, 1), 25: UnreadType("I16", 1, 2),
    26: UnreadType("I32", 1, 4), 27: UnreadType("I64", 1, 8), 28: UnreadType("F64", 1, 8),
    29: UnreadType("IQ1_M", 256, 56), 34: UnreadType("TQ1_0", 256, 54), 35: UnreadType("TQ2_0", 256, 66),
    39: UnreadType("MXFP4", 32, 17), 40: UnreadType("NVFP4", 64, 36), 41: UnreadType("Q1_0", 128, 18),
}  # fmt: skip


class Layout(NamedTuple):
    """A type's block: `weights` in `nbytes`, and the function from blocks [n, nbytes] to [n, weights]."""

    weights: int
    nbytes: int
    restore: Callable[[Bytes], Floats]


def tensor_type(number: int) -> GgmlType | UnreadType | None:
    """The type with ggml's `number`; None if there is none, or none that is known here."""
    try:
        return GgmlType(number)
    except ValueError:
        return UNREAD_TYPES.get(number)


def block_size(kind: GgmlType | UnreadType) -> tuple[int, int]:
    """Weights in a block, and its bytes."""
    layout = kind if isinstance(kind, UnreadType) else LAYOUTS[kind]
    return layout.weights, layout.nbytes


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


def _q4_k(blocks: Bytes) -> Floats:
    scales, minimums = q4_k_scales(blocks)
    scale = _half(blocks, 0) * scales.astype(np.float32)  # [n, 8]
    minimum = _half(blocks, 2) * minimums.astype(np.float32)
    values = q4_k_values(blocks).reshape(-1, _GROUPS, BLOCK).astype(np.float32)
    return (scale[..., None] * values - minimum[..., None]).reshape(-1, SUPER_BLOCK)


def q4_k_scales(blocks: Bytes) -> tuple[Bytes, Bytes]:
    """Unpack Q4_K's scales and minimums, 0–63: blocks [n, 144] to two uint8 [n, 8].

    They lie in bytes 4–15. The first four of each have six bits of a byte of their own; the last four have
    their low four bits in a shared byte and their high two bits on top of the first four's bytes.
    """
    low, high, shared = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = (low & 0x3F, shared & 0x0F | low >> 6 << 4)
    minimums = (high & 0x3F, shared >> 4 | high >> 6 << 4)
    return np.concatenate(scales, axis=1), np.concatenate(minimums, axis=1)


def q4_k_values(blocks: Bytes) -> Bytes:
    """Unpack Q4_K's values, 0–15: blocks [n, 144] to uint8 [n, 256]."""
    packed = blocks[:, 16:].reshape(-1, _GROUPS // 2, 1, BLOCK)
    return np.concatenate((packed & 0x0F, packed >> 4), axis=2).reshape(-1, SUPER_BLOCK)


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
    GgmlType.Q4_K: Layout(SUPER_BLOCK, 144, _q4_k),
}
