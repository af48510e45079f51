"""Every way to multiply experts, of every level and format, against what its rounding gives in float64.

A way's own model leaves only the error of float32 sums. Without the model the errors are those that rounding
weights and activations costs; they must stay within what a precision may cost.
"""

from __future__ import annotations

import pytest
import torch

from kernels.cpu import CpuPool, ExpertShape, Isa
from kernels.formats import WeightFormat
from tests.kernels.experts import (
    BY_PANELS,
    BY_ROWS,
    Activations,
    Precision,
    errors,
    exact,
    make_expert,
    make_rows,
    normal_expert,
    precision,
    run,
    tuning,
    ways,
)

ALL_COUNTS = (*range(1, 41), 64, 100, 256)
# A single neuron; below, at and above panels, tiles and blocks of 256, and odd; several blocks.
SIZES = {
    (1, 1): ALL_COUNTS,
    (32, 31): (1, 4, 5, 12, 13, 33),
    (33, 129): ALL_COUNTS,
    (70, 45): ALL_COUNTS,
    (161, 97): ALL_COUNTS,
    (256, 256): (1, 3, 7, 32, 100),
    (257, 300): ALL_COUNTS,
    (576, 768): (1, 4, 5, 33, 100),
}


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_only_float32_sums_differ_from_the_model(
    isa: Isa, format: WeightFormat, size: tuple[int, int]
) -> None:
    expert = make_expert(ExpertShape(*size, format))
    counts = SIZES[size]
    x = make_rows(max(counts), size[0])
    models: dict[Precision, torch.Tensor] = {}
    with CpuPool(2, isa) as pool:
        for way in ways(format):
            for division in (BY_PANELS, BY_ROWS):
                pool.tuning = tuning(way, division)
                found: dict[Precision, list[torch.Tensor]] = {}
                for count in counts:
                    how = precision(isa, format, way, count)
                    if how not in models:
                        models[how] = exact(expert, x, how)
                    error = errors(run(pool, expert, x[:count]), models[how][:count])
                    # A neuron next to the middle between two numbers may be rounded to the other one.
                    limit = 1e-5 if how.activations is Activations.FLOAT else 5e-3
                    assert float(error.max()) <= limit, (way, division, count)
                    found.setdefault(how, []).append(error)
                for how, each in found.items():
                    # That is rare: three neurons of 10,000 are within 1e-6 of such a middle.
                    share = (torch.cat(each) > 1e-5).float().mean()
                    assert float(share) <= 0.15, (way, division, how, share)


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize(
    "size", [(33, 129), (70, 45), (161, 97), (257, 300), (576, 768)], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_rounding_costs_what_the_precision_may_cost(
    isa: Isa, format: WeightFormat, size: tuple[int, int]
) -> None:
    """Of normal weights and inputs; the weights are those that the quantised ones stand for."""
    expert = normal_expert(ExpertShape(*size, format))
    x = make_rows(100, size[0])
    plain = exact(expert, x)
    # Fewer than 200 terms a sum: the error of one token varies, and the worst of 100 is up to twice as large.
    slack = 2 if min(size) < 200 else 1.25
    with CpuPool(2, isa) as pool:
        for way in ways(format):
            pool.tuning = tuning(way, 12)
            for count in (3, 12, 100):
                bound = precision(isa, format, way, count).bound
                error = errors(run(pool, expert, x[:count]), plain[:count])
                assert float(error.median()) <= bound, (way, count)
                assert float(error.max()) <= slack * bound, (way, count)
