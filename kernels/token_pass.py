"""One token through a layer in two native calls, one for its dense part and one for its experts: decode.

A layer of a small model is a hundred short operations. As calls from Python each costs more than its
arithmetic; together in one native call they cost nothing, and attention is divided between the threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import native
from kernels.cpu import CpuPool
from kernels.layout import ExpertShape, PackedLinear, check_block


@dataclass(frozen=True)
class TokenShape:
    """Sizes of the layers: `head_dim` even, `heads` a multiple of `kv_heads`, `top_k` at most `experts`."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int
    top_k: int
    eps: float  # of RMSNorm

    def __post_init__(self) -> None:
        sizes = (self.hidden, self.heads, self.kv_heads, self.head_dim, self.top_k)
        if min(sizes) < 1 or self.heads % self.kv_heads or self.head_dim % 2 or self.top_k > self.experts:
            raise ValueError(f"layers cannot have these sizes: {self}")


@dataclass(frozen=True)
class TokenLayer:
    """A layer's weights: norms float32 [hidden], the router float32 [experts, hidden], packed projections."""

    input_norm: Tensor
    qkv: PackedLinear  # [(heads + 2 kv_heads) * head_dim, hidden]
    attention_out: PackedLinear  # [hidden, heads * head_dim]
    post_norm: Tensor
    router: Tensor


class TokenPass:
    """Runs RMSNorm, rotary grouped-query attention, the residual sum, RMSNorm and the router of a layer.

    All arithmetic is float32, but for the rounding of activations that the pool's instruction set implies in
    the projections. The buffers are made once and reused: `x` [1, hidden] is the residual stream, which the
    caller fills and adds the experts' results to; `normed` [1, hidden] the experts' input; `ids` int64 and
    `weights` float32, both [1, top_k], the chosen experts, best first. One call at a time.
    """

    def __init__(self, pool: CpuPool, shape: TokenShape, layers: list[TokenLayer]) -> None:
        self._pool = pool
        self._shape = shape
        self._layers = layers  # kept: the native layers hold addresses
        self.x = torch.empty(1, shape.hidden)
        self.normed = torch.empty(1, shape.hidden)
        self.ids = torch.empty(1, shape.top_k, dtype=torch.int64)
        self.weights = torch.empty(1, shape.top_k)
        self._native_layers = [_native_layer(shape, layer) for layer in layers]
        self._native = pool.native.token_pass(
            shape.hidden,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            shape.experts,
            shape.top_k,
            shape.eps,
            self.x.data_ptr(),
            self.normed.data_ptr(),
            self.ids.data_ptr(),
            self.weights.data_ptr(),
        )

    def run(self, layer: int, cache: Tensor, position: int, first: int, cos: Tensor, sin: Tensor) -> None:
        """One layer for the token at `position`.

        `cache` is the layer's float32 [2 (keys, values), kv_heads, capacity, head_dim], where the token's key
        and value are written at its position; it sees positions from `first` on. It may be a part of a longer
        cache: only the positions of a head need to be contiguous. `cos` and `sin` are float32 [head_dim], the
        sines of the first half negated.
        """
        shape = self._shape
        capacity = cache.shape[2]
        apart, rest = divmod(cache.stride(1), shape.head_dim)  # positions from one head to the next
        if (
            cache.shape != (2, shape.kv_heads, capacity, shape.head_dim)
            or cache.dtype != torch.float32
            or cache.stride()[2:] != (shape.head_dim, 1)
            or rest
            or not cache.is_cpu
            or not 0 <= first <= position < capacity
        ):
            raise ValueError(f"a cache of {cache.dtype} {list(cache.shape)} cannot hold position {position}")
        for table in (cos, sin):
            _check("a table of angles", table, (shape.head_dim,))
        self._pool.check_usable()
        self._native.run(
            self._native_layers[layer],
            cache.data_ptr(),
            cache[1].data_ptr(),
            apart,
            position,
            first,
            cos.data_ptr(),
            sin.data_ptr(),
        )


def run_chosen(
    pool: CpuPool, blocks: Tensor, shape: ExpertShape, x: Tensor, ids: Tensor, weights: Tensor, out: Tensor
) -> None:
    """Add the weighted outputs of one token's experts to `out`: `CpuPool.run_experts` with less ceremony.

    `blocks` is uint8 [experts, stride], a layer's packed experts, each aligned to 64 bytes; x and out float32
    [1, hidden]; ids int64 and weights float32, [1, top_k]. Raises IndexError for an id that is no expert.
    """
    pool.check_usable()
    check_block(blocks[0, : shape.nbytes], shape)
    if blocks.stride(0) % 64 or blocks.shape[1] < shape.nbytes:
        raise ValueError(f"experts of {shape.nbytes} bytes cannot lie {blocks.stride(0)} bytes apart")
    _check("x", x, (1, shape.hidden))
    _check("out", out, (1, shape.hidden))
    _check("weights", weights, (1, ids.shape[1]))
    if ids.dtype != torch.int64 or not ids.is_contiguous() or not ids.is_cpu:
        raise ValueError(f"ids must be contiguous int64 on the CPU, not {ids.dtype}")
    pool.native.run_chosen(
        shape.native,
        blocks.data_ptr(),
        blocks.stride(0),
        blocks.shape[0],
        x.data_ptr(),
        ids.data_ptr(),
        weights.data_ptr(),
        ids.shape[1],
        out.data_ptr(),
    )


def _native_layer(shape: TokenShape, layer: TokenLayer) -> object:
    queries, rows = shape.heads * shape.head_dim, (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    for name, packed, size in (
        ("qkv", layer.qkv, (rows, shape.hidden)),
        ("attention_out", layer.attention_out, (shape.hidden, queries)),
    ):
        if (packed.rows, packed.cols) != size:
            raise ValueError(f"{name} is {packed.rows} × {packed.cols}, not {size[0]} × {size[1]}")
    _check("input_norm", layer.input_norm, (shape.hidden,))
    _check("post_norm", layer.post_norm, (shape.hidden,))
    _check("router", layer.router, (shape.experts, shape.hidden))
    native_layer: object = native.load().token_layer(
        layer.input_norm.data_ptr(),
        layer.qkv.data.data_ptr(),
        layer.attention_out.data.data_ptr(),
        layer.post_norm.data_ptr(),
        layer.router.data_ptr(),
    )
    return native_layer


def _check(name: str, tensor: Tensor, size: tuple[int, ...]) -> None:
    if (
        tensor.shape != size
        or tensor.dtype != torch.float32
        or not tensor.is_contiguous()
        or not tensor.is_cpu
    ):
        raise ValueError(f"{name} must be contiguous float32 {list(size)} on the CPU, not {tensor.dtype}")
