"""Rotary positions (RoFormer, arXiv 2104.09864) of one new token in each of some sequences.

Queries are rotated in place, keys and values go to their rows of a cache, where `kernels.gpu.attention` reads
them. The form is that of `engine.models.rope`: the two halves of a head are the rotated pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.numbers import triton_format


def rope_and_store(
    qkv: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, rows: Tensor, store: Tensor
) -> None:
    """Rotate queries in place, and write rotated keys and values to the cache.

    Args:
        qkv: float32 [tokens, (heads + 2 kv_heads) · head_dim]: queries, keys, values.
        cos, sin: float32 [positions, head_dim], the sine of the first half with a minus sign
            (`engine.models.rope`).
        positions: int32 [tokens]; -1 is padding, left alone.
        rows: int32 [tokens, capacity], the cache row of each position of a sequence.
        store: one layer's keys and values, [2, kv_heads, cache rows, head_dim], bf16 or float32.
    """
    tokens, heads, kv_heads, head_dim = sizes_of(qkv, store)
    _rope_and_store[(tokens, heads + 2 * kv_heads)](
        qkv,
        cos,
        sin,
        positions,
        rows,
        store,
        rows.stride(0),
        store.stride(0),
        store.stride(1),
        HEADS=heads,
        KV_HEADS=kv_heads,
        HALF=head_dim // 2,
        PADDED=triton.next_power_of_2(head_dim // 2),
        FORMAT=triton_format(store),
        num_warps=1,
    )


def sizes_of(qkv: Tensor, store: Tensor) -> tuple[int, int, int, int]:
    """Tokens, heads, key heads and their size. Raises ValueError for tensors that do not belong together."""
    two, kv_heads, _, head_dim = store.shape
    tokens, width = qkv.shape
    heads = width // head_dim - 2 * kv_heads
    if two != 2 or width != (heads + 2 * kv_heads) * head_dim or heads < 1 or heads % kv_heads:
        raise ValueError(f"queries, keys and values {list(qkv.shape)} do not fit a cache {list(store.shape)}")
    if qkv.dtype != torch.float32 or not qkv.is_contiguous() or head_dim % 2:
        raise ValueError("queries are contiguous float32, of heads of even size")
    if store.stride()[2:] != (head_dim, 1):
        raise ValueError("the rows of a head must follow each other in the cache")
    return tokens, heads, kv_heads, head_dim


@triton.jit
def _rope_and_store(
    qkv: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    positions: tl.tensor,
    rows: tl.tensor,
    store: tl.tensor,
    rows_stride: tl.tensor,
    kind_stride: tl.tensor,
    head_stride: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    PADDED: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """One head of one token; a thread has both halves of what it rotates."""
    token = tl.program_id(0)
    head = tl.program_id(1)
    position = tl.load(positions + token)
    if position >= 0:
        dim = tl.arange(0, PADDED)
        inside = dim < HALF
        start = qkv + (token * (HEADS + 2 * KV_HEADS) + head) * 2 * HALF + dim
        low = tl.load(start, mask=inside, other=0.0)
        high = tl.load(start + HALF, mask=inside, other=0.0)
        if head < HEADS + KV_HEADS:
            at = position * 2 * HALF + dim
            low_cos = tl.load(cos + at, mask=inside, other=0.0)
            high_cos = tl.load(cos + at + HALF, mask=inside, other=0.0)
            low_sin = tl.load(sin + at, mask=inside, other=0.0)
            high_sin = tl.load(sin + at + HALF, mask=inside, other=0.0)
            turned = low * low_cos + high * low_sin
            high = high * high_cos + low * high_sin
            low = turned
        if head < HEADS:
            tl.store(start, low, mask=inside)
            tl.store(start + HALF, high, mask=inside)
        else:
            kind = (head - HEADS) // KV_HEADS
            kv_head = (head - HEADS) % KV_HEADS
            row = tl.load(rows + token.to(tl.int64) * rows_stride + position).to(tl.int64)
            place = kind * kind_stride.to(tl.int64) + kv_head * head_stride.to(tl.int64) + row * 2 * HALF
            tl.store(store + place + dim, low.to(FORMAT), mask=inside)
            tl.store(store + place + HALF + dim, high.to(FORMAT), mask=inside)
