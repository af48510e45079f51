"""Experts of every instruction set level against float64 torch on the checkpoint's own matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn.functional import silu

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa

Weights = tuple[Tensor, Tensor, Tensor]
TOKEN_COUNTS = [*range(1, 41), 64, 100]
# Not multiples of 16 or 32, odd, below and above a panel, and one padded nowhere.
SHAPES = [ExpertShape(70, 45), ExpertShape(33, 129), ExpertShape(161, 97), ExpertShape(64, 96)]


def bf16(x: Tensor) -> Tensor:
    return x.bfloat16().double()


def exact(x: Tensor, weights: Weights, *, rounded: bool = False) -> Tensor:
    """The expert in float64; `rounded`: activations are rounded to bf16 where AVX512_BF16 rounds them."""
    w1, w3, w2 = (w.double() for w in weights)
    x = bf16(x) if rounded else x.double()
    neurons = silu(x @ w1.T) * (x @ w3.T)
    return (bf16(neurons) if rounded else neurons) @ w2.T


def expected(x: Tensor, jobs: Sequence[tuple[ExpertJob, Weights]], out: Tensor, *, rounded: bool) -> Tensor:
    total = out.double()
    for job, weights in jobs:
        y = exact(x, weights, rounded=rounded)
        for token, weight in zip(job.tokens.tolist(), job.weights.tolist(), strict=True):
            total[token] += weight * y[token]
    return total


def worst_error(y: Tensor, reference: Tensor) -> float:
    """The largest relative error of a token, in norms."""
    return float(((y.double() - reference).norm(dim=-1) / reference.norm(dim=-1).clamp_min(1e-300)).max())


def rounds_activations(isa: Isa) -> bool:
    return isa >= Isa.AVX512_BF16


# dpbf16's sums differ from float64 by float32 rounding, which moves a few neurons to the next bf16.
def tolerance(isa: Isa) -> float:
    return 1e-3 if rounds_activations(isa) else 1e-5


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_token_counts(isa: Isa, shape: ExpertShape, random_expert: Callable) -> None:
    block, weights = random_expert(shape)
    with CpuPool(2, isa) as pool:
        for count in TOKEN_COUNTS:
            x = torch.randn(count, shape.hidden, generator=torch.Generator().manual_seed(count))
            job = ExpertJob(block, torch.arange(count, dtype=torch.int32), torch.full((count,), 0.75))
            out = torch.zeros(count, shape.hidden)
            pool.run_experts(x, [job], shape, out)
            plain = 0.75 * exact(x, weights)
            modelled = 0.75 * exact(x, weights, rounded=rounds_activations(isa))
            assert worst_error(out, modelled) <= tolerance(isa), count
            # One percent for what rounding activations costs; twice that for the smallest shapes here, whose
            # outputs are sums of few terms.
            assert worst_error(out, plain) <= (0.02 if rounds_activations(isa) else 1e-5), count


@pytest.mark.parametrize("tokens", [1, 7, 20, 90])
def test_starter_shape_stays_within_one_percent(isa: Isa, tokens: int, random_expert: Callable) -> None:
    shape = ExpertShape(576, 768)
    block, weights = random_expert(shape)
    x = torch.randn(tokens, shape.hidden, generator=torch.Generator().manual_seed(1))
    out = torch.zeros(tokens, shape.hidden)
    job = ExpertJob(block, torch.arange(tokens, dtype=torch.int32), torch.ones(tokens))
    with CpuPool(2, isa) as pool:
        pool.run_experts(x, [job], shape, out)
    assert worst_error(out, exact(x, weights)) <= (0.01 if rounds_activations(isa) else 1e-5)


@pytest.mark.parametrize("counts", [(3, 0, 5, 1), (40, 0, 2, 17), (150, 300, 0, 1)], ids=str)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_several_experts_add_to_the_output(
    isa: Isa, counts: tuple[int, ...], threads: int, random_expert: Callable, random_job: Callable
) -> None:
    shape, tokens = ExpertShape(50, 130), 12
    x = torch.randn(tokens, shape.hidden, generator=torch.Generator().manual_seed(3))
    before = torch.randn(tokens, shape.hidden, generator=torch.Generator().manual_seed(4))
    jobs = []
    for seed, count in enumerate(counts):  # rows repeat within a job: there are only 12
        block, weights = random_expert(shape, seed)
        jobs.append((random_job(block, count, tokens, seed), weights))
    out = before.clone()
    with CpuPool(threads, isa) as pool:
        pool.run_experts(x, [job for job, _ in jobs], shape, out)
    reference = expected(x, jobs, before, rounded=rounds_activations(isa))
    assert worst_error(out, reference) <= tolerance(isa)
    untouched = sorted(set(range(tokens)) - {t for job, _ in jobs for t in job.tokens.tolist()})
    assert torch.equal(out[untouched], before[untouched])


def test_nothing_to_do_changes_nothing(isa: Isa, random_expert: Callable, random_job: Callable) -> None:
    shape = ExpertShape(40, 40)
    block, _ = random_expert(shape)
    out = torch.full((3, 40), 7.0)
    with CpuPool(2, isa) as pool:
        pool.run_experts(torch.zeros(3, 40), [], shape, out)
        pool.run_experts(torch.zeros(3, 40), [random_job(block, 0, 3)] * 2, shape, out)
        pool.run_experts(torch.zeros(0, 40), [], shape, torch.zeros(0, 40))
    assert bool((out == 7.0).all())


@pytest.mark.parametrize("gate", [-1e38, -3e4, -200.0, -88.0, -87.0, -50.0, 0.0, 1e-30, 50.0, 89.0, 3e4])
def test_silu_over_its_whole_range(isa: Isa, gate: float, random_expert: Callable) -> None:
    """One neuron with a known gate: the activation alone, exact for bf16 inputs."""
    shape = ExpertShape(2, 1)
    x = torch.tensor([[gate, 1.0]]).bfloat16().float()
    w1 = torch.tensor([[1.0, 0.0]]).bfloat16()
    w3, w2 = torch.tensor([[0.0, 1.0]]).bfloat16(), torch.tensor([[1.0], [1.0]]).bfloat16()
    y = run_alone(isa, shape, (w1, w3, w2), x)
    reference = exact(x, (w1, w3, w2))
    # Below -87 the kernels return 0; the true value is under 1.5e-36.
    assert torch.allclose(y.double(), reference, rtol=4e-3 if rounds_activations(isa) else 1e-6, atol=1.5e-36)


def run_alone(isa: Isa, shape: ExpertShape, weights: Weights, x: Tensor) -> Tensor:
    from kernels.cpu import pack_expert

    block = torch.empty(shape.nbytes + 63, dtype=torch.uint8)
    start = -block.data_ptr() % 64
    block = block[start : start + shape.nbytes]
    pack_expert(*weights, block)
    out = torch.zeros_like(x)
    count = x.shape[0]
    with CpuPool(1, isa) as pool:
        pool.run_experts(
            x, [ExpertJob(block, torch.arange(count, dtype=torch.int32), torch.ones(count))], shape, out
        )
    return out


@pytest.mark.parametrize("count", [1, 5, 30])
def test_overflowing_sums_give_no_nan(isa: Isa, count: int) -> None:
    """Gates and ups beyond float32, of either sign: the output is huge or zero, never NaN."""
    shape = ExpertShape(32, 64)
    x = torch.full((count, 32), 3e38)
    for sign_gate in (-1, 1):
        for sign_up in (-1, 1):
            w1 = torch.full((64, 32), sign_gate * 1e10).bfloat16()
            w3 = torch.full((64, 32), sign_up * 1e10).bfloat16()
            w2 = torch.full((32, 64), 1e-3).bfloat16()
            y = run_alone(isa, shape, (w1, w3, w2), x)
            assert not y.isnan().any()
            if sign_gate < 0:
                assert bool((y == 0).all())
            else:
                assert bool((y * sign_up > 1e35).all())


def test_nan_is_not_hidden(isa: Isa) -> None:
    shape = ExpertShape(32, 32)
    w = torch.ones(32, 32).bfloat16()
    x = torch.ones(2, 32)
    x[1, 5] = float("nan")
    y = run_alone(isa, shape, (w, w, w), x)
    assert not y[0].isnan().any()
    assert bool(y[1].isnan().all())


@pytest.mark.parametrize("scale", [1e-45, 1e-42, 1e-39, 1e-30, 1e15])
def test_denormal_and_large_inputs(isa: Isa, scale: float, random_expert: Callable) -> None:
    """Denormals are kept or, by dpbf16, flushed to zero; nothing else is lost and nothing becomes NaN."""
    shape = ExpertShape(70, 45)
    _, (w1, w3, w2) = random_expert(shape)
    x = torch.randn(9, 70, generator=torch.Generator().manual_seed(2)) * scale
    w3 = torch.zeros_like(w3)
    w3[:, 0] = 1.0
    x[:, 0] = 1.0  # the up product is 1: the output is linear in small gates
    y = run_alone(isa, shape, (w1, w3, w2), x)
    assert not y.isnan().any()
    assert worst_error(y, exact(x, (w1, w3, w2))) <= (0.02 if rounds_activations(isa) else 1e-5)
