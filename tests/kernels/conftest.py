from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.cpu import ExpertJob, ExpertShape, Isa, available_isas, default_isa, pack_expert


@pytest.fixture(params=[isa for isa in available_isas() if isa <= default_isa()])
def isa(request: pytest.FixtureRequest) -> Isa:
    """Each level that this machine has, up to FIDDLER_MAX_ISA."""
    level: Isa = request.param
    return level


def aligned_bytes(count: int) -> Tensor:
    buffer = torch.empty(count + 63, dtype=torch.uint8)
    start = -buffer.data_ptr() % 64
    return buffer[start : start + count]


@pytest.fixture
def random_expert() -> Callable[..., tuple[Tensor, tuple[Tensor, Tensor, Tensor]]]:
    """Make (packed block, (w1, w3, w2)) of random bf16 weights that keep activations near 1."""

    def make(shape: ExpertShape, seed: int = 0) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        g = torch.Generator().manual_seed(seed)
        h, i = shape.hidden, shape.intermediate
        w1 = (torch.randn(i, h, generator=g) / h**0.5).bfloat16()
        w3 = (torch.randn(i, h, generator=g) / h**0.5).bfloat16()
        w2 = (torch.randn(h, i, generator=g) / i**0.5).bfloat16()
        block = aligned_bytes(shape.nbytes)
        pack_expert(w1, w3, w2, block)
        return block, (w1, w3, w2)

    return make


@pytest.fixture
def random_job() -> Callable[..., ExpertJob]:
    """Make a job of `count` random rows (repetitions included) of `tokens`, with random routing weights."""

    def make(block: Tensor, count: int, tokens: int, seed: int = 0) -> ExpertJob:
        g = torch.Generator().manual_seed(seed)
        rows = torch.randint(0, tokens, (count,), generator=g, dtype=torch.int32)
        return ExpertJob(block, rows, torch.rand(count, generator=g) + 0.1)

    return make
