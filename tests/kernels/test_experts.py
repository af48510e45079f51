"""Calls of experts as a pool comes, of every level and format, against float64 torch.

The ways to multiply, parts of experts, and extreme inputs have tests of their own: test_expert_*.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernels.cpu import CpuPool, ExpertShape, Isa
from kernels.formats import WeightFormat
from kernels.tuning import FormatTuning
from tests.kernels.experts import (
    Activations,
    errors,
    exact,
    make_expert,
    make_rows,
    packed_bf16,
    precision,
    run,
)


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("counts", [(3, 0, 5, 1), (40, 0, 2, 17), (150, 300, 0, 1)], ids=str)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("choice", [None, FormatTuning(6, few_eight_bit=True, exact_tokens=2)], ids=str)
def test_several_experts_add_to_the_output(
    isa: Isa,
    format: WeightFormat,
    counts: tuple[int, ...],
    threads: int,
    choice: FormatTuning | None,
    random_job: Callable,
) -> None:
    """Experts of one call go different ways, by how many tokens they have: all three in the second choice."""
    shape, tokens = ExpertShape(50, 130, format), 12
    x, before = make_rows(tokens, shape.hidden, seed=3), make_rows(tokens, shape.hidden, seed=4)
    out, reference = before.clone(), before.double()
    jobs = []
    with CpuPool(threads, isa) as pool:
        if choice is None:
            choice = pool.tuning.formats[format]
        pool.tuning = pool.tuning.with_format(format, choice)
        for seed, count in enumerate(counts):
            expert = make_expert(shape, seed)
            job = random_job(expert.block, count, tokens, seed)  # rows repeat within a job: there are only 12
            jobs.append(job)
            how = precision(isa, format, choice.way(count), count)
            rows = job.tokens.long()
            reference.index_add_(0, rows, job.weights.double()[:, None] * exact(expert, x, how)[rows])
        pool.run_experts(x, jobs, shape, out)
    # Only a neuron next to the middle between two numbers may be rounded to the other one.
    rounds = any(
        precision(isa, format, choice.way(n), n).activations is not Activations.FLOAT for n in counts
    )
    assert float(errors(out, reference).max()) <= (3e-3 if rounds else 1e-5)
    assert float(errors(out, reference).median()) <= 1e-4
    untouched = sorted(set(range(tokens)) - {t for job in jobs for t in job.tokens.tolist()})
    assert torch.equal(out[untouched], before[untouched])


@pytest.mark.parametrize("format", WeightFormat)
def test_nothing_to_do_changes_nothing(isa: Isa, format: WeightFormat, random_job: Callable) -> None:
    expert = make_expert(ExpertShape(40, 40, format))
    out = torch.full((3, 40), 7.0)
    with CpuPool(2, isa) as pool:
        pool.run_experts(torch.zeros(3, 40), [], expert.shape, out)
        pool.run_experts(torch.zeros(3, 40), [random_job(expert.block, 0, 3)] * 2, expert.shape, out)
        pool.run_experts(torch.zeros(0, 40), [], expert.shape, torch.zeros(0, 40))
    assert bool((out == 7.0).all())


@pytest.mark.parametrize("gate", [-1e38, -3e4, -200.0, -88.0, -87.0, -50.0, 0.0, 1e-30, 50.0, 89.0, 3e4])
def test_silu_over_its_whole_range(isa: Isa, gate: float) -> None:
    """One neuron with a known gate: the activation alone, exact for bf16 inputs."""
    x = torch.tensor([[gate, 1.0]]).bfloat16().float()
    w1 = torch.tensor([[1.0, 0.0]]).bfloat16()
    w3, w2 = torch.tensor([[0.0, 1.0]]).bfloat16(), torch.tensor([[1.0], [1.0]]).bfloat16()
    expert = packed_bf16(w1, w3, w2)
    with CpuPool(1, isa) as pool:
        y = run(pool, expert, x)
    # Below -87 the kernels return 0; the true value is under 1.5e-36.
    rtol = 4e-3 if isa >= Isa.AVX512_BF16 else 1e-6
    assert torch.allclose(y.double(), exact(expert, x), rtol=rtol, atol=1.5e-36)
