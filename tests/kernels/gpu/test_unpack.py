"""Unpacking on a GPU gives the weights themselves, bit by bit, and what unpacking with torch does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.formats import WeightFormat
from kernels.gpu.unpack import unpack
from kernels.shape import ExpertShape
from kernels.unpack import unpack_expert
from tests.kernels.experts import Expert, make_expert

PANELS = 19
EXPERTS = {format: make_expert(ExpertShape(300, 597, format)) for format in WeightFormat}


def run(
    expert: Expert, panels: tuple[int, int], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    hidden, inner = expert.shape.hidden, expert.shape.intermediate
    n = max(0, min(32 * panels[1], inner) - 32 * panels[0])
    gate_up = torch.full((2 * n, hidden), float("nan"), dtype=dtype, device=device)
    down = torch.full((hidden, n), float("nan"), dtype=dtype, device=device)
    unpack(expert.block.to(device), expert.shape, panels, gate_up, down)
    return gate_up[:n].cpu(), gate_up[n:].cpu(), down.cpu()


def rounded(w: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """float64 weights as float32, which holds them exactly or to the nearest, or as bf16.

    To bf16 the GPU rounds to the nearest, Triton's interpreter cuts off.
    """
    w = w.float()
    if dtype is torch.bfloat16 and device.type == "cpu":
        w = (w.view(torch.int32) & ~0xFFFF).view(torch.float32)
    return w.to(dtype)


def check(expert: Expert, panels: tuple[int, int], dtype: torch.dtype, device: torch.device) -> None:
    neurons = slice(32 * panels[0], 32 * panels[1])
    w1, w3, w2 = (rounded(w, dtype, device) for w in expert.weights)
    for got, wanted in zip(
        run(expert, panels, dtype, device), (w1[neurons], w3[neurons], w2[:, neurons]), strict=True
    ):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("panels", [(0, PANELS), (7, 9), (5, 17), (18, PANELS), (6, 6)])
def test_panels(device: torch.device, format: WeightFormat, panels: tuple[int, int]) -> None:
    check(EXPERTS[format], panels, torch.float32, device)


@pytest.mark.parametrize("size", [(1, 1), (40, 70), (75, 33), (33, 300)])
@pytest.mark.parametrize("format", WeightFormat)
def test_odd_sizes(device: torch.device, format: WeightFormat, size: tuple[int, int]) -> None:
    expert = make_expert(ExpertShape(*size, format), seed=3)
    check(expert, (0, expert.shape.panels), torch.bfloat16, device)


@pytest.mark.parametrize("wrong", ["panels", "block", "gate_up", "down", "format"])
def test_refuses_what_does_not_fit(wrong: str) -> None:
    shape = ExpertShape(40, 70)
    block, panels = EXPERTS[WeightFormat.BF16].block[: shape.nbytes], (1, 3)
    gate_up, down = torch.empty(76, 40), torch.empty(40, 38)
    if wrong == "panels":
        panels = (1, 4)
    elif wrong == "block":
        block = block[1:]
    elif wrong == "gate_up":
        gate_up = gate_up[1:]
    elif wrong == "down":
        down = down.T
    else:
        gate_up = gate_up.bfloat16()
    with pytest.raises(ValueError, match=r"no panels|contiguous"):
        unpack(block, shape, panels, gate_up, down)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("panels", [(0, 44), (3, 21)])
def test_larger_ones_on_a_gpu(format: WeightFormat, dtype: torch.dtype, panels: tuple[int, int]) -> None:
    """Several programs a row and a column, and the results of unpacking with torch."""
    expert = make_expert(ExpertShape(1024, 1400, format), seed=1)
    gpu = torch.device("cuda")
    check(expert, panels, dtype, gpu)
    if dtype is torch.bfloat16:
        reference = unpack_expert(expert.block.to(gpu), expert.shape, panels)
        got = run(expert, panels, dtype, gpu)
        assert all(torch.equal(a, b.cpu()) for a, b in zip(got, reference, strict=True))
