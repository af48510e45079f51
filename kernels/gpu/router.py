"""The router of one layer on the GPU: RMSNorm, logits, the chosen experts and their weights.

As `engine.models.router`: logits are float32, the best ones are chosen (of equal ones the lower id), and the
softmax is over the chosen ones. Results go to the device and, in the same launch, to memory of the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.numbers import triton_format

# Weights of the router that a program holds at once: with 512 threads 64 registers each.
_HELD = 1 << 15


@dataclass(frozen=True, eq=False)
class Routed:
    """Where the results go. The host's copies are usually pinned; tokens are rows."""

    normed: Tensor  # bf16 or float32 [tokens, hidden]
    ids: Tensor  # int32 [tokens, top_k], best first
    weights: Tensor  # float32 [tokens, top_k], each row sums to 1
    host_normed: Tensor  # float32 [tokens, hidden]
    host_ids: Tensor  # int32 [tokens, top_k]
    host_weights: Tensor  # float32 [tokens, top_k]


def route(
    x: Tensor,
    norm: Tensor,
    router: Tensor,
    eps: float,
    to: Routed,
    *,
    forced: Tensor | None = None,
    positions: Tensor | None = None,
) -> None:
    """Normalise x, and choose the experts of each token.

    Args:
        x: float32 [tokens, hidden], the residual stream with what attention gave.
        norm: float32 [hidden], the weight of RMSNorm.
        router: float32 [experts, hidden].
        eps: of RMSNorm.
        to: the results, whose size gives top_k.
        forced: int32 [tokens, top_k]: take these experts; the weights still come from the logits.
        positions: int32 [tokens]: a token at -1 is padding and gets ids -1 and weights 0.
    """
    tokens, hidden = x.shape
    experts, top_k = router.shape[0], to.ids.shape[1]
    if router.shape[1] != hidden or norm.shape != (hidden,) or x.dtype != torch.float32:
        raise ValueError(f"a router {list(router.shape)} does not fit {x.dtype} {list(x.shape)}")
    if not 1 <= top_k <= experts or to.ids.shape[0] != tokens or to.normed.shape != x.shape:
        raise ValueError(f"{list(to.ids.shape)} ids do not fit {tokens} tokens and {experts} experts")
    padded = triton.next_power_of_2(experts)
    block = min(triton.next_power_of_2(hidden), max(32, _HELD // padded))
    _route[(tokens,)](
        x,
        norm,
        router,
        to.normed,
        to.ids,
        to.weights,
        to.host_normed,
        to.host_ids,
        to.host_weights,
        to.ids if forced is None else forced,
        to.ids if positions is None else positions,
        eps,
        HIDDEN=hidden,
        BLOCK=block,
        EXPERTS=experts,
        PADDED=padded,
        TOP_K=top_k,
        TOP=triton.next_power_of_2(top_k),
        FORCED=forced is not None,
        PADDING=positions is not None,
        FORMAT=triton_format(to.normed),
        num_warps=max(1, min(16, padded * block // 1024)),
    )


@triton.jit
def _route(
    x: tl.tensor,
    norm: tl.tensor,
    router: tl.tensor,
    normed: tl.tensor,
    ids: tl.tensor,
    weights: tl.tensor,
    host_normed: tl.tensor,
    host_ids: tl.tensor,
    host_weights: tl.tensor,
    forced: tl.tensor,
    positions: tl.tensor,
    eps: tl.tensor,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
    EXPERTS: tl.constexpr,
    PADDED: tl.constexpr,
    TOP_K: tl.constexpr,
    TOP: tl.constexpr,
    FORCED: tl.constexpr,
    PADDING: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """One token. The logits do not wait for the norm: its factor is the same for all of them."""
    token = tl.program_id(0)
    start = token * HIDDEN
    expert = tl.arange(0, PADDED)
    squares = tl.zeros((BLOCK,), tl.float32)
    products = tl.zeros((PADDED, BLOCK), tl.float32)
    for first in tl.static_range(0, HIDDEN, BLOCK):
        col = first + tl.arange(0, BLOCK)
        inside = col < HIDDEN
        values = tl.load(x + start + col, mask=inside, other=0.0)
        scaled = values * tl.load(norm + col, mask=inside, other=0.0)
        rows = tl.load(
            router + expert[:, None] * HIDDEN + col[None, :],
            mask=(expert < EXPERTS)[:, None] & inside[None, :],
            other=0.0,
        )
        squares += values * values
        products += rows * scaled[None, :]
    factor = 1.0 / tl.sqrt(tl.sum(squares, 0) / HIDDEN + eps)
    logits = tl.sum(products, 1) * factor

    if BLOCK >= HIDDEN:
        _write(normed, host_normed, start + col, scaled * factor, inside, FORMAT)
    else:
        for first in tl.static_range(0, HIDDEN, BLOCK):
            col = first + tl.arange(0, BLOCK)
            inside = col < HIDDEN
            values = tl.load(x + start + col, mask=inside, other=0.0)
            scaled = values * tl.load(norm + col, mask=inside, other=0.0)
            _write(normed, host_normed, start + col, scaled * factor, inside, FORMAT)

    place = tl.arange(0, TOP)
    chosen = tl.zeros((TOP,), tl.int32)
    chosen_logits = tl.full((TOP,), float("-inf"), tl.float32)
    # A logit that is not a number is chosen last, and any id is one of an expert.
    ordered = tl.where(logits == logits, logits, float("-inf"))
    free = expert < EXPERTS
    for k in tl.static_range(TOP_K):
        if FORCED:
            best = tl.load(forced + token * TOP_K + k)
        else:
            most = tl.max(tl.where(free, ordered, float("-inf")), 0)
            best = tl.min(tl.where(free & (ordered == most), expert, PADDED), 0)
            free = free & (expert != best)
        logit = tl.sum(tl.where(expert == best, logits, 0.0), 0)
        chosen = tl.where(place == k, best, chosen)
        chosen_logits = tl.where(place == k, logit, chosen_logits)
    shares = tl.exp(chosen_logits - tl.max(chosen_logits, 0))
    shares = shares / tl.sum(shares, 0)
    if PADDING:
        padding = tl.load(positions + token) < 0
        chosen = tl.where(padding, -1, chosen)
        shares = tl.where(padding, 0.0, shares)
    at = token * TOP_K + place
    tl.store(ids + at, chosen, mask=place < TOP_K)
    tl.store(weights + at, shares, mask=place < TOP_K)
    tl.store(host_ids + at, chosen, mask=place < TOP_K)
    tl.store(host_weights + at, shares, mask=place < TOP_K)


@triton.jit
def _write(
    normed: tl.tensor,
    host_normed: tl.tensor,
    at: tl.tensor,
    values: tl.tensor,
    inside: tl.tensor,
    FORMAT: tl.constexpr,
) -> None:
    """A block of the normalised state for the device and for the host."""
    tl.store(normed + at, values.to(FORMAT), mask=inside)
    tl.store(host_normed + at, values, mask=inside)
