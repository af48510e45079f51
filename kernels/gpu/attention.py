"""Attention of one new token in each of up to 16 sequences, over keys and values in rows of a cache.

As in flash-decoding (https://crfm.stanford.edu/2023/10/12/flashdecoding.html) the positions that a token sees
are divided among programs, each with all query heads of a key head and an online softmax, and a second kernel
puts the parts together. Lengths are read on the device and the grid is fixed, so that a captured graph serves
every length. Which position belongs to which part depends on the length alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.numbers import dot_format, triton_format
from kernels.gpu.rope import sizes_of

# Bytes of keys that a program takes at a time, and at most how many positions: what fits the registers.
_KEY_BYTES, _POSITIONS = 16 << 10, 64
_PROGRAMS, _MOST_SPLITS = 264, 64  # wanted, two for each multiprocessor of an H200, and parts at most
_LEAST_DOT = 16  # rows, columns and inputs of a tile of the tensor cores
# Bytes of a program's queries, and of its scores, at most. With keys and values they share 99 KiB on desktop
# cards: compiled for compute capability 8.0 and 9.0, no shape within these bounds took more than 97.
_GROUP_BYTES = 32 << 10


@dataclass(frozen=True, eq=False)
class AttentionScratch:
    """Parts of the results: unnormalised sums of values, and the softmax's greatest score and sum."""

    sums: Tensor  # float32 [tokens, heads, splits, head_dim]
    tops: Tensor  # float32 [tokens, heads, splits, 2]

    @classmethod
    def make(
        cls, tokens: int, heads: int, kv_heads: int, head_dim: int, capacity: int, device: torch.device
    ) -> AttentionScratch:
        """For up to `tokens` sequences of up to `capacity` positions."""
        wanted = min(triton.cdiv(capacity, _POSITIONS), triton.cdiv(_PROGRAMS, tokens * kv_heads))
        splits = min(_MOST_SPLITS, 1 << (wanted.bit_length() - 1))
        return cls(
            torch.empty(tokens, heads, splits, head_dim, device=device),
            torch.empty(tokens, heads, splits, 2, device=device),
        )


def fits(heads: int, kv_heads: int, head_dim: int, value_bytes: int) -> bool:
    """Whether `attend` can be compiled for such heads, with keys of numbers of `value_bytes`.

    Heads of up to 256 in float32 and 512 in bf16 do, with up to 32 query heads for each key head.
    """
    group, padded, positions = _tiles(heads, kv_heads, head_dim, value_bytes)
    return positions >= _LEAST_DOT and group * max(padded, positions) * value_bytes <= _GROUP_BYTES


def _tiles(heads: int, kv_heads: int, head_dim: int, value_bytes: int) -> tuple[int, int, int]:
    """Queries, their padded length, and positions that a program has at a time."""
    group = triton.next_power_of_2(max(_LEAST_DOT, heads // kv_heads))
    padded = triton.next_power_of_2(max(_LEAST_DOT, head_dim))
    return group, padded, min(_POSITIONS, _KEY_BYTES // (padded * value_bytes))


def attend(
    qkv: Tensor,
    store: Tensor,
    rows: Tensor,
    positions: Tensor,
    window: int | None,
    scratch: AttentionScratch,
    out: Tensor,
) -> None:
    """Attend from rotated queries to positions 0 to positions[b] of their sequences, the own one included.

    Args:
        qkv, store, rows, positions: as for `kernels.gpu.rope.rope_and_store`, after it. Padding gets zeros.
        window: how many positions are visible, the own one included; None for all.
        scratch: for at least these tokens.
        out: bf16 or float32 [tokens, heads · head_dim].

    Raises:
        ValueError: shapes that do not belong together, or heads that do not fit (`fits`).
    """
    tokens, heads, kv_heads, head_dim = sizes_of(qkv, store)
    splits = scratch.sums.shape[2]
    if scratch.sums.shape[0] < tokens or scratch.sums.shape[1::2] != (heads, head_dim):
        raise ValueError(f"scratch for {list(scratch.sums.shape)} does not fit {tokens} tokens")
    if out.shape != (tokens, heads * head_dim):
        raise ValueError(f"the output has {list(out.shape)} numbers, not {[tokens, heads * head_dim]}")
    if not fits(heads, kv_heads, head_dim, store.element_size()):
        raise ValueError(f"{heads} heads of {head_dim} {store.dtype} for {kv_heads} do not fit shared memory")
    group, padded, positions_at_once = _tiles(heads, kv_heads, head_dim, store.element_size())
    _attend[(tokens * kv_heads, splits)](
        qkv,
        store,
        rows,
        positions,
        scratch.sums,
        scratch.tops,
        rows.stride(0),
        store.stride(0),
        store.stride(1),
        window or 0,
        1.0 / (math.sqrt(head_dim) * math.log(2)),
        HEADS=heads,
        KV_HEADS=kv_heads,
        GROUP=group,
        HEAD_DIM=head_dim,
        PADDED=padded,
        SPLITS=splits,
        POSITIONS=positions_at_once,
        FORMAT=dot_format(store),
        num_warps=4,
        num_stages=3,
    )
    _combine[(tokens, heads)](
        scratch.sums,
        scratch.tops,
        positions,
        out,
        HEADS=heads,
        HEAD_DIM=head_dim,
        PADDED=padded,
        SPLITS=splits,
        FORMAT=triton_format(out),
        num_warps=4,
    )


@triton.jit
def _attend(
    qkv: tl.tensor,
    store: tl.tensor,
    rows: tl.tensor,
    positions: tl.tensor,
    sums: tl.tensor,
    tops: tl.tensor,
    rows_stride: tl.tensor,
    kind_stride: tl.tensor,
    head_stride: tl.tensor,
    window: tl.tensor,
    scale: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED: tl.constexpr,
    SPLITS: tl.constexpr,
    POSITIONS: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """One part of the positions for one key head of one token. Scores are in powers of two."""
    token = tl.program_id(0) // KV_HEADS
    kv_head = tl.program_id(0) % KV_HEADS
    split = tl.program_id(1)
    per_kv: tl.constexpr = HEADS // KV_HEADS
    in_group = tl.arange(0, GROUP)
    head = kv_head * per_kv + in_group
    dim = tl.arange(0, PADDED)
    real = (in_group < per_kv)[:, None] & (dim < HEAD_DIM)[None, :]

    end = tl.load(positions + token) + 1
    first = 0
    if window > 0:
        first = tl.maximum(end - window, 0)
    blocks = (end - first + POSITIONS - 1) // POSITIONS
    share = (blocks + SPLITS - 1) // SPLITS * POSITIONS
    begin = first + split * share
    stop = tl.minimum(begin + share, end)

    at = token * (HEADS + 2 * KV_HEADS) * HEAD_DIM + head[:, None] * HEAD_DIM + dim[None, :]
    queries = tl.load(qkv + at, mask=real, other=0.0)
    queries = queries.to(store.dtype.element_ty).to(tl.float32).to(FORMAT)
    top = tl.full((GROUP,), float("-inf"), tl.float32)
    weight = tl.zeros((GROUP,), tl.float32)
    total = tl.zeros((GROUP, PADDED), tl.float32)
    keys_start = store + kv_head * head_stride.to(tl.int64)
    values_start = keys_start + kind_stride.to(tl.int64)
    for position in range(begin, stop, POSITIONS):
        this = position + tl.arange(0, POSITIONS)
        seen = this < stop
        row = tl.load(rows + token.to(tl.int64) * rows_stride + this, mask=seen, other=0).to(tl.int64)
        place = row[:, None] * HEAD_DIM + dim[None, :]
        here = seen[:, None] & (dim < HEAD_DIM)[None, :]
        keys = tl.load(keys_start + place, mask=here, other=0.0).to(tl.float32).to(FORMAT)
        values = tl.load(values_start + place, mask=here, other=0.0).to(tl.float32).to(FORMAT)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp2(top - higher)
        shares = tl.exp2(scores - higher[:, None])
        weight = weight * shrink + tl.sum(shares, 1)
        total = tl.dot(shares.to(FORMAT), values, total * shrink[:, None], input_precision="ieee")
        top = higher

    part = (token * HEADS + head) * SPLITS + split
    tl.store(sums + part[:, None] * HEAD_DIM + dim[None, :], total, mask=real)
    tl.store(tops + part * 2, top, mask=in_group < per_kv)
    tl.store(tops + part * 2 + 1, weight, mask=in_group < per_kv)


@triton.jit
def _combine(
    sums: tl.tensor,
    tops: tl.tensor,
    positions: tl.tensor,
    out: tl.tensor,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED: tl.constexpr,
    SPLITS: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """One head of one token: the parts, each scaled to the greatest score of all."""
    token = tl.program_id(0)
    head = token * HEADS + tl.program_id(1)
    split = tl.arange(0, SPLITS)
    dim = tl.arange(0, PADDED)
    inside = dim < HEAD_DIM
    top = tl.load(tops + (head * SPLITS + split) * 2)
    weight = tl.load(tops + (head * SPLITS + split) * 2 + 1)
    parts = tl.load(
        sums + (head * SPLITS + split)[:, None] * HEAD_DIM + dim[None, :], mask=inside[None, :], other=0.0
    )
    real = tl.load(positions + token) >= 0
    factor = tl.exp2(top - tl.where(real, tl.max(top, 0), 0.0))  # 0 for a part without positions
    total = tl.sum(parts * factor[:, None], 0) / tl.where(real, tl.sum(weight * factor, 0), 1.0)
    tl.store(out + head * HEAD_DIM + dim, tl.where(real, total, 0.0).to(FORMAT), mask=inside)
