"""The quantisers: errors within bounds and never above min-max; the same bits on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad, silu

from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.formats import WeightFormat
from kernels.isa import Isa, available_isas
from kernels.pack import quantise

QUANTISED = (WeightFormat.INT8, WeightFormat.INT4)
SMALLEST = 2.0**-24  # of float16
# Rounding in float32 can choose another code where a weight lies half-way between two.
CLOSE = 1 + 1e-4

Maker = Callable[[int, int, torch.Generator], Tensor]


def groups_of_different_size(rows: int, cols: int, g: torch.Generator) -> Tensor:
    sizes = torch.randn(rows, -(-cols // 32), generator=g).mul(2).exp()
    return torch.randn(rows, cols, generator=g) * sizes.repeat_interleave(32, 1)[:, :cols]


KINDS: dict[str, Maker] = {
    "normal": lambda r, c, g: torch.randn(r, c, generator=g),
    "heavy tails": lambda r, c, g: torch.randn(r, c, generator=g) / (torch.rand(r, c, generator=g) + 1e-3),
    "groups of different size": groups_of_different_size,
    "positive": lambda r, c, g: torch.rand(r, c, generator=g) + 1,
    "negative": lambda r, c, g: -torch.rand(r, c, generator=g) - 1,
    "few values": lambda r, c, g: torch.randint(-2, 3, (r, c), generator=g).float(),
    "mostly zero": lambda r, c, g: torch.randn(r, c, generator=g) * (torch.rand(r, c, generator=g) < 0.05),
    "constant rows": lambda r, c, g: torch.randn(r, 1, generator=g).expand(r, c).contiguous(),
    "zero": lambda r, c, _: torch.zeros(r, c),
}


def blocks_of(weight: Tensor, size: int) -> Tensor:
    """Float64 [rows, blocks, size]; what a short block lacks is NaN."""
    filled = pad(weight.double(), (0, -weight.shape[1] % size), value=float("nan"))
    return filled.unflatten(1, (-1, size))


def half(x: Tensor) -> Tensor:
    return x.half().double()


def ratio(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(b == 0, 0.0, a / b)


def squared_errors(weight: Tensor, quantised: Tensor, size: int) -> Tensor:
    """Of each block of `size` weights, [rows, blocks]."""
    return (blocks_of(weight, size) - blocks_of(quantised, size)).square().nansum(2)


def min_max_int8(weight: Tensor) -> Tensor:
    """Squared errors [rows, groups] with the greatest magnitude as the code 127."""
    groups = blocks_of(weight, 32)
    scales = half(groups.abs().nan_to_num(0).amax(2, keepdim=True) / 127)
    codes = ratio(groups, scales).round().clamp(-128, 127)
    return (codes * scales - groups).square().nansum(2)


def min_max_int4(weight: Tensor) -> Tensor:
    """Squared errors [rows, blocks] with each group's least and greatest weight as the codes 0 and 15."""
    blocks = blocks_of(weight, 256).unflatten(2, (8, 32))
    low = blocks.nan_to_num(float("inf")).amin(3, keepdim=True).clamp_max(0)
    high = blocks.nan_to_num(float("-inf")).amax(3, keepdim=True)
    scales = ((high - low) / 15).clamp_min(0)
    d, e = half(scales.amax(2, keepdim=True) / 255), half(-low.amin(2, keepdim=True) / 255)
    scales = ratio(scales, d).round().clamp(0, 255) * d
    low = ratio(low, e).round().clamp(-255, 0) * e
    codes = ratio(blocks - low, scales).round().clamp(0, 15)
    return (codes * scales + low - blocks).square().nansum((2, 3))


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


@pytest.mark.parametrize("kind", KINDS)
@given(
    rows=st.integers(1, 9),
    cols=st.integers(1, 700),
    exponent=st.integers(-3, 3),
    bf16=st.booleans(),
    seed=st.integers(0, 2**31),
)
@example(rows=1, cols=1, exponent=0, bf16=False, seed=0)
@example(rows=3, cols=33, exponent=0, bf16=True, seed=1)
@example(rows=1, cols=257, exponent=0, bf16=True, seed=2)
@settings(deadline=None, max_examples=25)
def test_never_worse_than_min_max(
    kind: str, rows: int, cols: int, exponent: int, bf16: bool, seed: int
) -> None:
    weight = KINDS[kind](rows, cols, torch.Generator().manual_seed(seed)) * 10.0**exponent
    weight = weight.bfloat16() if bf16 else weight
    # What float32 itself rounds, the norm of 256 errors in the last place of the greatest weight.
    slack = 16 * float(weight.abs().max()) * 2.0**-23
    int8 = squared_errors(weight, quantise(weight, WeightFormat.INT8).dequantise(), 32)
    assert bool((int8.sqrt() <= min_max_int8(weight).sqrt() * CLOSE + slack).all())
    int4 = squared_errors(weight, quantise(weight, WeightFormat.INT4).dequantise(), 256)
    assert bool((int4.sqrt() <= min_max_int4(weight).sqrt() * CLOSE + slack).all())


def test_errors_of_normal_weights() -> None:
    """Weights, and the output of an expert: the figures that the formats were chosen for."""
    g = torch.Generator().manual_seed(0)
    hidden, intermediate = 512, 896
    sizes = ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    weights = [(torch.randn(rows, cols, generator=g) / cols**0.5).bfloat16() for rows, cols in sizes]
    x = torch.randn(64, hidden, generator=g).double()

    def output(w1: Tensor, w3: Tensor, w2: Tensor) -> Tensor:
        return (silu(x @ w1.double().T) * (x @ w3.double().T)) @ w2.double().T

    for format, of_weights, of_output in (
        (WeightFormat.INT8, 0.0051, 0.012),
        (WeightFormat.INT4, 0.0705, 0.13),
    ):
        quantised = [quantise(weight, format).dequantise() for weight in weights]
        assert all(relative(a, b) <= of_weights for a, b in zip(quantised, weights, strict=True))
        assert relative(output(*quantised), output(*weights)) <= of_output


def test_heavy_tails_gain_as_much_as_normal_weights() -> None:
    g = torch.Generator().manual_seed(0)
    chi = torch.stack([torch.randn(64, 4096, generator=g).square() for _ in range(5)]).mean(0)
    weight = torch.randn(64, 4096, generator=g) / chi.sqrt()
    error = squared_errors(weight, quantise(weight, WeightFormat.INT4).dequantise(), 256).sum()
    assert float(error / min_max_int4(weight).sum()) <= 0.82  # in squares; normal weights 0.79


@pytest.mark.parametrize("format", QUANTISED)
@pytest.mark.parametrize("kind", ["normal", "groups of different size", "few values", "positive"])
def test_every_instruction_set_gives_the_same_bits(format: WeightFormat, kind: str) -> None:
    weight = KINDS[kind](33, 1000, torch.Generator().manual_seed(5))
    reference = quantise(weight, format, isa=Isa.PORTABLE)
    for isa in available_isas():
        other = quantise(weight, format, isa=isa)
        for field, tensor in vars(reference).items():
            assert torch.equal(tensor, getattr(other, field)), (isa, field)


@pytest.mark.parametrize("format", QUANTISED)
def test_threads_do_not_disturb_each_other(format: WeightFormat) -> None:
    weights = [KINDS["normal"](64, 700, torch.Generator().manual_seed(seed)) for seed in range(8)]
    alone = [quantise(weight, format).dequantise() for weight in weights]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda weight: quantise(weight, format).dequantise(), weights))
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("format", QUANTISED)
def test_a_row_does_not_depend_on_its_neighbours(format: WeightFormat) -> None:
    weight = KINDS["heavy tails"](6, 300, torch.Generator().manual_seed(0))
    whole = quantise(weight, format).dequantise()
    rows = [quantise(row[None].contiguous(), format).dequantise() for row in weight]
    assert torch.equal(torch.cat(rows), whole)


@pytest.mark.parametrize("format", QUANTISED)
def test_zeros_stay_zero(format: WeightFormat) -> None:
    assert not quantise(torch.zeros(5, 70), format).dequantise().any()


@pytest.mark.parametrize("value", [0.3, -0.3, 1.0, -2e-2, 6e4])
def test_constants(value: float) -> None:
    """One number alone fits a scale or a minimum; what is left is the rounding of float16."""
    weight = torch.full((2, 300), value)
    for format in QUANTISED:
        assert relative(quantise(weight, format).dequantise(), weight) <= 2.0**-11


@pytest.mark.parametrize("format", QUANTISED)
@pytest.mark.parametrize("size", [1e-45, 1e-40, 1e-10, 1e-7, 1e-6, 1e-5, 1e-4])
def test_small_weights_lose_no_more_than_float16_does(format: WeightFormat, size: float) -> None:
    """Where scales are denormal float16, their steps are the error, but no weight is cut off."""
    weight = torch.randn(4, 512, generator=torch.Generator().manual_seed(0)) * size
    difference = (quantise(weight, format).dequantise().double() - weight.double()).abs()
    usual = 0.03 if format is WeightFormat.INT8 else 0.35
    assert float(difference.max()) <= max(SMALLEST, usual * size)


@pytest.mark.parametrize("format", QUANTISED)
@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_found(format: WeightFormat, bf16: bool, bad: float) -> None:
    weight = torch.ones(40, 333)
    for row, col in ((39, 332), (17, 256), (17, 31), (0, 0)):  # each before the ones already there
        weight[row, col] = bad
        with pytest.raises(NonFiniteWeightError, match=f"gate .*row {row}, column {col}") as caught:
            quantise(weight.bfloat16() if bf16 else weight, format, name="gate")
        assert (caught.value.matrix, caught.value.row, caught.value.col) == ("gate", row, col)


@pytest.mark.parametrize(("format", "fits"), [(WeightFormat.INT8, 8e6), (WeightFormat.INT4, 1.6e7)])
@pytest.mark.parametrize("sign", [1, -1])
def test_weights_too_large_for_the_scales(format: WeightFormat, fits: float, sign: int) -> None:
    weight = torch.randn(9, 300, generator=torch.Generator().manual_seed(0))
    weight[5, 299] = sign * fits
    assert float(quantise(weight, format).dequantise()[5, 299]) == pytest.approx(sign * fits, rel=1e-2)
    for too_large in (1e10, 3.3e38):
        weight[5, 299] = sign * too_large
        with pytest.raises(WeightRangeError, match=r"too large.*row 5, column 299.*bf16"):
            quantise(weight.bfloat16(), format)


@pytest.mark.parametrize(
    "weight",
    [
        torch.zeros(3),
        torch.zeros(3, 0),
        torch.zeros(3, 4).double(),
        torch.zeros(4, 3).T,
        torch.zeros(2, 2).half(),
    ],
)
def test_refuses_other_tensors(weight: Tensor) -> None:
    with pytest.raises(ValueError, match="contiguous bf16 or float32"):
        quantise(weight, WeightFormat.INT8)


def test_bf16_is_no_quantised_format() -> None:
    with pytest.raises(ValueError, match="bf16 is not"):
        quantise(torch.zeros(2, 2), WeightFormat.BF16)
