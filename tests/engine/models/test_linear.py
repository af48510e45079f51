"""Dense products in 8 bits, in the form that a GPU holds them, against float64."""

import pytest
import torch

from engine import gpu_format
from engine.models.linear import QuantisedLinears
from kernels.errors import WeightRangeError

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def matrix(rows, cols, seed=0):
    return torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)).bfloat16()


def error(got, expected):
    """Relative to the size of what was expected."""
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("tokens", [1, 16, 17, 40])
def test_products_with_rounded_weights(tokens, threads):
    weight, x = matrix(70, 96), torch.randn(tokens, 96)
    linear = QuantisedLinears(DEVICE, torch.float32, [(70, 96)], threads).add(weight)
    got = linear(x.to(DEVICE))
    assert got.shape == (tokens, 70)
    exact = x.double() @ weight.double().T
    rounded = x.double() @ linear.weight.dequantise().double().cpu().T
    assert error(got, rounded) < 1e-5
    assert 1e-4 < error(got, exact) < 1e-2  # what 8 bits cost: 0.5 %


def test_bf16_products():
    weight, x = matrix(64, 128), torch.randn(30, 128)
    linear = QuantisedLinears(DEVICE, torch.bfloat16, [(64, 128)], 2).add(weight)
    got = linear(x.to(DEVICE))
    assert got.dtype == torch.bfloat16
    assert error(got, x.double() @ weight.double().T) < 2e-2


def test_a_matrix_that_is_unpacked_in_parts(monkeypatch):
    """The last part is smaller, and another matrix of the same workspace is as large as a part."""
    monkeypatch.setattr(gpu_format, "UNPACKED_BYTES", 4 * 64 * 24)
    shapes = [(70, 64), (24, 64)]
    linears = QuantisedLinears(DEVICE, torch.float32, shapes, 2)
    x = torch.randn(33, 64)
    for seed, shape in enumerate(shapes):
        linear = linears.add(matrix(*shape, seed))
        rounded = x.double() @ linear.weight.dequantise().double().cpu().T
        assert error(linear(x.to(DEVICE)), rounded) < 1e-5


def test_more_threads_than_rows_and_columns_that_are_no_group():
    weight = matrix(2, 45)
    linear = QuantisedLinears(DEVICE, torch.float32, [(2, 45)], 8).add(weight)
    assert linear.weight.scales.shape == (2, 2)
    assert error(linear(torch.eye(45, device=DEVICE)), weight.double().T) < 1e-2


def test_a_weight_too_large_for_8_bits():
    weight = matrix(4, 32)
    weight[3, 7] = 1e30
    with pytest.raises(WeightRangeError):
        QuantisedLinears(DEVICE, torch.float32, [(4, 32)], 2).add(weight)
