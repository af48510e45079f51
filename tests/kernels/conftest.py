from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.cpu import ExpertJob, ExpertShape, Isa, available_isas, default_isa
from tests.kernels.experts import make_expert
from tests.kernels.pools import SHAPE


@pytest.fixture(params=[isa for isa in available_isas() if isa <= default_isa()])
def isa(request: pytest.FixtureRequest) -> Isa:
    """Each level that this machine has, up to FIDDLER_MAX_ISA."""
    level: Isa = request.param
    return level


@pytest.fixture
def random_expert() -> Callable[..., tuple[Tensor, tuple[Tensor, Tensor, Tensor]]]:
    """Make (packed block, float64 (w1, w3, w2)) of random weights that keep activations near 1."""

    def make(shape: ExpertShape, seed: int = 0) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        expert = make_expert(shape, seed)
        return expert.block, expert.weights

    return make


@pytest.fixture
def random_job() -> Callable[..., ExpertJob]:
    """Make a job of `count` random rows (repetitions included) of `tokens`, with random routing weights."""

    def make(block: Tensor, count: int, tokens: int, seed: int = 0) -> ExpertJob:
        g = torch.Generator().manual_seed(seed)
        rows = torch.randint(0, tokens, (count,), generator=g, dtype=torch.int32)
        return ExpertJob(block, rows, torch.rand(count, generator=g) + 0.1)

    return make


@pytest.fixture
def work(random_expert: Callable, random_job: Callable) -> Callable[..., tuple[Tensor, list[ExpertJob]]]:
    """Make x and jobs for three experts with `count` tokens each."""

    def make(count: int, seed: int = 0) -> tuple[Tensor, list[ExpertJob]]:
        x = torch.randn(count, SHAPE.hidden, generator=torch.Generator().manual_seed(seed))
        jobs = [random_job(random_expert(SHAPE, seed + e)[0], count, count, seed + e) for e in range(3)]
        return x, jobs

    return make
