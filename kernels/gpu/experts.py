"""Packed experts on a GPU, multiplied as they stand: bf16, 8 and 4 bits, for up to 16 tokens.

Blocks lie in `data`, uint8 [places, stride], each as `kernels.layout` describes it; a place's stride is a
multiple of 512 bytes. Results are the same bits each time, nothing is allocated, and calls can be captured in
CUDA graphs. Sums are of float32; weights and activations are taken exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.formats import WeightFormat
from kernels.gpu.expert_kernels import down, gate_up
from kernels.gpu.words import MAGIC
from kernels.layout import describe
from kernels.shape import PANEL_ROWS, ExpertShape

SPLITS = 8  # parts that the panels of an expert are divided into for w2
STRIDE_BYTES = 512  # places begin at multiples of it
MAX_PAIRS = 64  # of token and expert in a call
_NARROW = 2**31 - 1  # bytes of an expert up to which 32 bits address them


@dataclass(frozen=True)
class KernelSizes:
    """What a program of the two kernels takes at once."""

    words: int  # of a row that a thread takes one after the other; all of a group where there are groups
    units: int  # runs of `words` side by side, gate and up
    gate_warps: int
    row_tiles: int  # of w2, side by side
    at_once: int  # panels of w2
    down_warps: int


# By format and by the pairs of an expert that are served together. Measured on an H200 for one pair (two of
# Mixtral's experts a launch, none of them in the cache), of 7 to 10 sizes each: bf16 4.4 TB/s for gate and up
# and 4.0 for down (the worst 3.6 and 1.6; plain reading 4.4), int4 2.7 and 1.9 (the worst 1.9 and 0.8).
SIZES = {
    (WeightFormat.BF16, 1): KernelSizes(1, 128, 4, 4, 4, 4),
    (WeightFormat.BF16, 2): KernelSizes(1, 128, 4, 4, 4, 4),
    (WeightFormat.BF16, 4): KernelSizes(1, 128, 4, 4, 4, 4),
    (WeightFormat.INT8, 1): KernelSizes(8, 32, 4, 4, 8, 4),
    (WeightFormat.INT8, 2): KernelSizes(8, 32, 4, 4, 8, 4),
    (WeightFormat.INT8, 4): KernelSizes(8, 32, 4, 4, 8, 4),
    (WeightFormat.INT4, 1): KernelSizes(4, 32, 4, 4, 8, 4),
    (WeightFormat.INT4, 2): KernelSizes(4, 32, 4, 4, 8, 4),
    (WeightFormat.INT4, 4): KernelSizes(4, 32, 4, 4, 8, 4),
}


@dataclass(frozen=True)
class ExpertScratch:
    """Where the two kernels leave what they computed, a row for each pair (token, k): token · top_k + k."""

    inner: Tensor  # float32 [pairs, panels * 32]
    partial: Tensor  # float32 [pairs, SPLITS, hidden]

    @classmethod
    def make(cls, shape: ExpertShape, pairs: int, device: torch.device) -> ExpertScratch:
        """For calls of up to `pairs` pairs."""
        return cls(
            torch.zeros(pairs, shape.panels * PANEL_ROWS, device=device),
            torch.zeros(pairs, SPLITS, shape.hidden, device=device),
        )

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return 4 * (self.inner.numel() + self.partial.numel())


def run_residents(
    data: Tensor,
    shape: ExpertShape,
    x: Tensor,
    ids: Tensor,
    weights: Tensor,
    table: Tensor,
    scratch: ExpertScratch,
) -> None:
    """Run every pair whose expert has a place: partial[pair] sums to its weight times the expert's output.

    x: bf16 or float32 [B, hidden]; ids: int32 [B, top_k], any number outside 0 … experts - 1 for none;
    weights: float32 [B, top_k]; table: int32 [experts], the place of each, or a negative number. Rows of
    other pairs are left as they are. Raises ValueError for tensors that do not belong together.
    """
    _check(data, shape, x, ids, weights, scratch)
    _check_table(table, "places")
    _launch(data, shape, x, ids, weights, table, None, scratch)


def run_streamed(
    data: Tensor,
    shape: ExpertShape,
    x: Tensor,
    ids: Tensor,
    weights: Tensor,
    table: Tensor,
    firsts: Tensor,
    scratch: ExpertScratch,
) -> None:
    """`run_residents` for experts of which only the last panels are there, from `firsts`[expert] on.

    firsts: int32 [experts], from 0 to all panels, which leaves zeros; read where `table` has a place. Both
    may change between two replays of a graph.
    """
    _check(data, shape, x, ids, weights, scratch)
    _check_table(table, "places")
    _check_table(firsts, "first panels")
    if len(firsts) != len(table):
        raise ValueError(f"{len(firsts)} first panels do not belong to {len(table)} places")
    _launch(data, shape, x, ids, weights, table, firsts, scratch)


def _launch(
    data: Tensor,
    shape: ExpertShape,
    x: Tensor,
    ids: Tensor,
    weights: Tensor,
    table: Tensor,
    firsts: Tensor | None,
    scratch: ExpertScratch,
    sizes: KernelSizes | None = None,
) -> None:
    """Start both kernels; without `firsts` experts are there as a whole."""
    tokens, top_k = ids.shape
    pairs = tokens * top_k
    if not pairs:
        return
    members = members_for(tokens)
    sizes = sizes or SIZES[shape.format, members]
    common = {
        "HIDDEN": shape.hidden,
        "PANELS": shape.panels,
        "EXPERTS": table.shape[0],
        "STRIDE": data.stride(0),
        "FORMAT": shape.format.number,
        "STREAMED": firsts is not None,
        "WIDE": data.stride(0) > _NARROW,
        "PAIRS": 1 << (pairs - 1).bit_length() if members > 1 else 1,
        "MEMBERS": members,
    }
    firsts = table if firsts is None else firsts  # not read then
    gate_up[(pairs, 2 * shape.panels)](
        data,
        x,
        ids,
        table,
        firsts,
        scratch.inner,
        MAGIC,
        pairs,
        TOP_K=top_k,
        PAIRED=shape.hidden % 2 == 0,
        UNITS=sizes.units,
        WORDS=sizes.words,
        num_warps=sizes.gate_warps,
        **common,
    )
    down[(pairs, -(-2 * shape.k_tiles // sizes.row_tiles), SPLITS)](
        data,
        ids,
        weights,
        table,
        firsts,
        scratch.inner,
        scratch.partial,
        MAGIC,
        pairs,
        SPLITS=SPLITS,
        ROW_TILES=sizes.row_tiles,
        AT_ONCE=sizes.at_once,
        num_warps=sizes.down_warps,
        **common,
    )


def members_for(tokens: int) -> int:
    """How many pairs of one expert a program serves: with more tokens more of them meet at an expert."""
    return 1 if tokens == 1 else 2 if tokens <= 4 else 4


def _check_table(table: Tensor, name: str) -> None:
    if table.dtype != torch.int32 or table.dim() != 1 or not table.is_contiguous():
        raise ValueError(f"{name} are contiguous int32 [experts], not {describe(table)}")


def _check(
    data: Tensor, shape: ExpertShape, x: Tensor, ids: Tensor, weights: Tensor, scratch: ExpertScratch
) -> None:
    if (
        data.dtype != torch.uint8
        or data.dim() != 2
        or not data.is_contiguous()
        or data.stride(0) % STRIDE_BYTES
        or data.stride(0) < shape.nbytes
    ):
        raise ValueError(
            f"packed experts are contiguous uint8 [places, a multiple of {STRIDE_BYTES} from {shape.nbytes} "
            f"on], not {describe(data)}"
        )
    if (
        x.dtype not in (torch.bfloat16, torch.float32)
        or x.dim() != 2
        or x.shape[1] != shape.hidden
        or not x.is_contiguous()
    ):
        raise ValueError(f"tokens are contiguous bf16 or float32 [tokens, {shape.hidden}], not {describe(x)}")
    if ids.dtype != torch.int32 or ids.dim() != 2 or ids.shape[0] != x.shape[0] or not ids.is_contiguous():
        raise ValueError(f"experts are contiguous int32 [{x.shape[0]}, top_k], not {describe(ids)}")
    if weights.dtype != torch.float32 or weights.shape != ids.shape or not weights.is_contiguous():
        raise ValueError(f"routing weights are contiguous float32 {list(ids.shape)}, not {describe(weights)}")
    if not ids.numel() <= min(scratch.inner.shape[0], MAX_PAIRS):
        raise ValueError(
            f"{ids.numel()} pairs of token and expert are more than the {scratch.inner.shape[0]} there is "
            f"room for, or than {MAX_PAIRS}"
        )
    if scratch.partial.shape[1:] != (SPLITS, shape.hidden):
        raise ValueError("the scratch space was made for another shape of experts")
