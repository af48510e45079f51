"""Extreme inputs and weights, every format and way: nothing finite becomes NaN, and no NaN is hidden."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernels.cpu import CpuPool, ExpertShape, Isa
from kernels.formats import WeightFormat
from kernels.quantised import Int4Matrix, Int8Matrix, QuantisedMatrix
from kernels.tuning import Way
from tests.kernels.experts import (
    BY_PANELS,
    BY_ROWS,
    Expert,
    errors,
    exact,
    make_expert,
    make_rows,
    matrix_sizes,
    normal_expert,
    packed,
    packed_bf16,
    precision,
    run,
    tuning,
    ways,
)

SHAPE = (70, 300)
LARGEST = torch.finfo(torch.float32).max  # as bf16 it would be an infinity
QUANTISED = [WeightFormat.INT8, WeightFormat.INT4]
FORMATS_AND_WAYS = [(format, way) for format in WeightFormat for way in ways(format)]
every_way = pytest.mark.parametrize(("format", "way"), FORMATS_AND_WAYS, ids=str)


def tuned(isa: Isa, way: Way) -> Iterator[CpuPool]:
    """A pool that goes this way, dividing by panels and then by rows."""
    with CpuPool(2, isa) as pool:
        for division in (BY_PANELS, BY_ROWS):
            pool.tuning = tuning(way, division)
            yield pool


def constant(format: WeightFormat, shape: ExpertShape, weight: float, signs: tuple[int, int, int]) -> Expert:
    """All weights of w1, w3 and w2 the same or almost, quantised ones with the largest value there is."""

    def matrix(rows: int, cols: int, sign: int) -> QuantisedMatrix:
        groups, blocks = -(-cols // 32), -(-cols // 256)
        if format is WeightFormat.INT8:
            values = torch.full((rows, cols), -128, dtype=torch.int8)
            return Int8Matrix(values, torch.full((rows, groups), -sign * weight / 128).half())
        values = torch.full((rows, cols), 15, dtype=torch.uint8)
        full = torch.full((rows, groups), 255, dtype=torch.uint8)
        # Half of it from the values, half from a minimum whose factor is of the other sign.
        d = torch.full((rows, blocks), sign * weight / (2 * 15 * 255)).half()
        e = torch.full((rows, blocks), -sign * weight / (2 * 255)).half()
        return Int4Matrix(values, full, full.clone(), d, e)

    sizes = matrix_sizes(shape)
    if format is WeightFormat.BF16:
        return packed_bf16(
            *(torch.full(size, sign * weight).bfloat16() for size, sign in zip(sizes, signs, strict=True))
        )
    return packed(*(matrix(*size, sign) for size, sign in zip(sizes, signs, strict=True)))


@every_way
def test_no_size_of_inputs_gives_nan(isa: Isa, format: WeightFormat, way: Way) -> None:
    """Sums of either sign overflow within groups, rows, experts, and the addition of experts."""
    expert = normal_expert(ExpertShape(*SHAPE, format))
    other = normal_expert(ExpertShape(*SHAPE, format), seed=1)
    x = make_rows(40, SHAPE[0])
    x /= x.abs().max()
    for pool in tuned(isa, way):
        for scale in (1e18, 1e19, 1e20, 1e25, 1e30, 1e36, 1e37, 3e38, LARGEST):
            for count in (3, 40):
                rows = x[:count] * scale
                out = run(pool, expert, rows)
                pool.run_experts(rows, [other.job(count), expert.job(count)], expert.shape, out)
                assert not out.isnan().any(), (scale, count)
                assert bool((out.norm(dim=1) > 1e30).all())


@every_way
def test_large_intermediates_are_as_exact_as_others(isa: Isa, format: WeightFormat, way: Way) -> None:
    expert = normal_expert(ExpertShape(*SHAPE, format))
    x = make_rows(40, SHAPE[0]) * 5e17  # neurons up to 5e36; sums of values before they are scaled overflow
    for pool in tuned(isa, way):
        for count in (3, 40):
            how = precision(isa, format, way, count)
            error = errors(run(pool, expert, x[:count]), exact(expert, x[:count], how))
            assert float(error.max()) <= 5e-3, count
            assert float(error.median()) <= 1e-5, count


@every_way
@pytest.mark.parametrize("scale", [1e-44, 1e-40, 1e-38, 1e-36, 1e-34, 1e-30, 1e-25])
def test_tiny_gates(isa: Isa, format: WeightFormat, way: Way, scale: float) -> None:
    """The output is linear in gates that are small; what is next to denormal may count as zero."""
    shape, one = ExpertShape(65, 45, format), 64  # this input has a group of its own
    w1, w3, w2 = make_expert(ExpertShape(65, 45)).weights
    w1[:, one] = 0
    w3[:] = 0
    w3[:, one] = 1
    if format is WeightFormat.BF16:
        expert = packed_bf16(w1.bfloat16(), w3.bfloat16(), w2.bfloat16())
    else:
        expert = packed(*(signs_of(format, w) for w in (w1, w3, w2)))
    x = make_rows(9, shape.hidden) * scale
    x[:, one] = 1
    reference = exact(expert, x).norm(dim=1)
    bound = 0.03 * reference + 1e-34
    if scale >= 1e-30:
        assert bool((reference > 10 * bound).all())
    for pool in tuned(isa, way):
        for count in (3, 9):
            y = run(pool, expert, x[:count])
            assert bool(((y.double() - exact(expert, x[:count])).norm(dim=1) <= bound[:count]).all()), count


def signs_of(format: WeightFormat, weights: torch.Tensor) -> QuantisedMatrix:
    """The signs of weights (0 stays 0) in a quantised format, without a minimum where none is negative."""
    rows, cols = weights.shape
    signs = weights.sign()
    groups, blocks = -(-cols // 32), -(-cols // 256)
    if format is WeightFormat.INT8:
        return Int8Matrix(signs.to(torch.int8), torch.ones(rows, groups).half())
    padded = torch.nn.functional.pad(signs, (0, groups * 32 - cols))
    minimums = -padded.view(rows, groups, 32).amin(-1).clamp_max(0)
    values = signs + minimums.repeat_interleave(32, 1)[:, :cols]
    ones, factors = torch.ones(rows, groups, dtype=torch.uint8), torch.ones(rows, blocks).half()
    return Int4Matrix(values.to(torch.uint8), ones, minimums.to(torch.uint8), factors, factors.clone())


@every_way
def test_zeros_give_zeros(isa: Isa, format: WeightFormat, way: Way) -> None:
    expert = make_expert(ExpertShape(*SHAPE, format))
    for pool in tuned(isa, way):
        for count in (3, 40):
            assert not run(pool, expert, torch.zeros(count, SHAPE[0])).any()


@pytest.mark.parametrize("format", QUANTISED)
@pytest.mark.parametrize("way", Way)
def test_scales_of_zero_make_weights_of_zero(isa: Isa, format: WeightFormat, way: Way) -> None:
    """Whatever the values, and however large the inputs: an infinite sum times 0 would be NaN."""
    shape = ExpertShape(64, 64, format)
    expert = constant(format, shape, 0.0, (1, 1, 1))
    for pool in tuned(isa, way):
        for count in (3, 40):
            for x in (1.0, 3e38):
                assert not run(pool, expert, torch.full((count, 64), x)).any()


@every_way
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_values_of_a_format(isa: Isa, format: WeightFormat, way: Way, sign: int) -> None:
    """-128 and 15 everywhere, and equal inputs, which rounding to 8 bits leaves as they are: ±127."""
    expert = constant(format, ExpertShape(96, 300, format), 1 / 16, (1, sign, 1))
    x = torch.full((40, 96), 0.5)
    reference = exact(expert, x)
    for pool in tuned(isa, way):
        for count in (1, 3, 40):
            how = precision(isa, format, way, count)
            limit = 1e-5 if how.bound == 1e-5 or (way is Way.EIGHT_BIT and not how.expands) else how.bound
            assert float(errors(run(pool, expert, x[:count]), reference[:count]).max()) <= limit, count


@every_way
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)], ids=str)
def test_sums_that_overflow(isa: Isa, format: WeightFormat, way: Way, signs: tuple[int, int]) -> None:
    """With the largest scales that float16 has: outputs are huge with the right sign, or zero."""
    expert = constant(format, ExpertShape(96, 64, format), 65504.0, (*signs, 1))
    for pool in tuned(isa, way):
        for count in (1, 3, 40):
            y = run(pool, expert, torch.full((count, 96), 3e38))
            if signs[0] < 0:  # silu of a large negative number
                assert not y.any()
            else:
                assert bool((y * signs[1] > 1e35).all())


@every_way
@pytest.mark.parametrize("at", [0, 31, 45, 69])
def test_nan_is_its_tokens_alone(isa: Isa, format: WeightFormat, way: Way, at: int) -> None:
    expert = make_expert(ExpertShape(*SHAPE, format))
    for pool in tuned(isa, way):
        for count in (3, 40):
            x = make_rows(count, SHAPE[0])
            clean = run(pool, expert, x)
            x[1, at] = float("nan")
            y = run(pool, expert, x)
            assert bool(y[1].isnan().all())
            others = [token for token in range(count) if token != 1]
            assert torch.equal(y[others], clean[others])


@every_way
@pytest.mark.parametrize("infinity", [float("inf"), float("-inf")])
def test_an_infinity_stays_visible(isa: Isa, format: WeightFormat, way: Way, infinity: float) -> None:
    """As a NaN or as a number beyond all others; other tokens know nothing of it."""
    expert = make_expert(ExpertShape(*SHAPE, format))
    for pool in tuned(isa, way):
        for count in (3, 40):
            x = make_rows(count, SHAPE[0])
            clean = run(pool, expert, x)
            x[2, 33] = infinity
            y = run(pool, expert, x)
            assert bool((y[2].isnan() | (y[2].abs() > 1e30)).all())
            others = [token for token in range(count) if token != 2]
            assert torch.equal(y[others], clean[others])
