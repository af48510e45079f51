"""Packed experts on a GPU against float64: every format, size, and division."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.formats import WeightFormat
from kernels.gpu.experts import SPLITS, ExpertScratch, run_residents, run_streamed
from kernels.shape import ExpertShape
from tests.kernels.experts import Expert, exact, make_expert, make_rows

SHAPES = [(1, 1), (40, 70), (75, 33), (300, 597)]
UNTOUCHED = 12345.0


def experts_of(hidden: int, intermediate: int, format: WeightFormat, count: int) -> list[Expert]:
    return [make_expert(ExpertShape(hidden, intermediate, format), seed) for seed in range(count)]


def store(experts: list[Expert], device: torch.device) -> Tensor:
    """The experts' blocks in the places 0, 1, …; what lies between them is noise."""
    nbytes = experts[0].shape.nbytes
    data = torch.randint(0, 256, (len(experts), -(-nbytes // 512) * 512), dtype=torch.uint8)
    for place, expert in enumerate(experts):
        data[place, :nbytes] = expert.block
    return data.to(device)


def scratch_for(shape: ExpertShape, pairs: int, device: torch.device) -> ExpertScratch:
    scratch = ExpertScratch.make(shape, pairs, device)
    scratch.partial.fill_(UNTOUCHED)
    scratch.inner.fill_(float("nan"))
    return scratch


def routing(tokens: int, top_k: int, experts: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    ids = torch.stack([torch.randperm(experts, generator=g)[:top_k] for _ in range(tokens)]).int()
    return ids, torch.rand(tokens, top_k, generator=g) + 0.1


def check(partial: Tensor, wanted: dict[int, Tensor]) -> None:
    """Each pair has its result in float64, or was not touched."""
    for pair, row in enumerate(partial.cpu()):
        if pair in wanted:
            y, reference = row.double().sum(0), wanted[pair]
            assert float((y - reference).norm()) <= 1e-5 * float(reference.norm()) + 1e-30, pair
        else:
            assert bool((row == UNTOUCHED).all()), pair


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("tokens", [1, 3, 7])
@pytest.mark.parametrize("size", SHAPES)
@pytest.mark.parametrize("format", WeightFormat)
def test_residents(
    device: torch.device, format: WeightFormat, size: tuple[int, int], tokens: int, dtype: torch.dtype
) -> None:
    experts = experts_of(*size, format, 2)
    table = torch.tensor([1, -1, 0, -1, 1], dtype=torch.int32)
    ids, weights = routing(tokens, 2, 5)
    x = make_rows(tokens, size[0]).to(dtype)
    scratch = scratch_for(experts[0].shape, 2 * tokens, device)
    run_residents(
        store(experts, device),
        experts[0].shape,
        x.to(device),
        ids.to(device),
        weights.to(device),
        table.to(device),
        scratch,
    )
    wanted = {
        pair: weights.flatten()[pair].double() * exact(experts[table[e]], x[pair // 2 : pair // 2 + 1])[0]
        for pair, e in enumerate(ids.flatten().tolist())
        if table[e] >= 0
    }
    assert scratch.partial.shape == (2 * tokens, SPLITS, size[0])
    check(scratch.partial, wanted)


@pytest.mark.parametrize("panels", [(0, 19), (3, 4), (7, 9), (1, 8), (5, 17), (8, 19), (18, 19), (6, 6)])
@pytest.mark.parametrize("format", WeightFormat)
def test_streamed_panels(device: torch.device, format: WeightFormat, panels: tuple[int, int]) -> None:
    experts = experts_of(300, 597, format, 2)
    ids, weights = routing(5, 3, 4)
    x = make_rows(5, 300)
    scratch = scratch_for(experts[0].shape, 15, device)
    run_streamed(
        store(experts, device),
        experts[0].shape,
        x.to(device),
        ids.to(device),
        weights.to(device),
        2,
        1,
        panels,
        scratch,
    )
    neurons = slice(32 * panels[0], 32 * panels[1])
    w1, w3, w2 = experts[1].weights
    part = Expert(experts[1].shape, experts[1].block, (w1[neurons], w3[neurons], w2[:, neurons]))
    y = exact(part, x)
    wanted = {
        pair: weights.flatten()[pair].double() * y[pair // 3]
        for pair, e in enumerate(ids.flatten().tolist())
        if e == 2
    }
    assert wanted
    check(scratch.partial, wanted)
