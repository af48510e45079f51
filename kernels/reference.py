"""What the kernels compute, in plain torch, in any dtype and on any device: the yardstick of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from kernels.layout import ExpertShape, PackedLinear
from kernels.unpack import unpack_expert


class Job(Protocol):
    """One expert and its tokens; see `kernels.cpu.ExpertJob`."""

    block: Tensor
    tokens: Tensor
    weights: Tensor


def expert(x: Tensor, w1: Tensor, w3: Tensor, w2: Tensor) -> Tensor:
    """Return the expert's output for x [tokens, hidden]: w2 (silu(w1 x) ⊙ w3 x), in the inputs' dtype."""
    return (torch.nn.functional.silu(x @ w1.T) * (x @ w3.T)) @ w2.T


def run_experts(x: Tensor, jobs: Sequence[Job], shape: ExpertShape, out: Tensor) -> None:
    """Add every job's weighted outputs to `out` [tokens, hidden], computing in the dtype of x."""
    for job in jobs:
        w1, w3, w2 = (w.to(x) for w in unpack_expert(job.block, shape))
        tokens = job.tokens.long()
        y = expert(x[tokens], w1, w3, w2) * job.weights.to(x)[:, None]
        out.index_add_(0, tokens, y.to(out.dtype))


def linear(x: Tensor, weight: PackedLinear) -> Tensor:
    """Return x [tokens, cols] times the transposed weight: [tokens, rows], in the dtype of x."""
    return x @ weight.unpack().to(x).T
