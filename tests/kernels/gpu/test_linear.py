"""Dense products of a few tokens against float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.gpu.linear import dequantise, embed_rows, linear_small
from kernels.quantised import Int8Matrix
from tests.kernels.gpu.devices import DEVICE, EXAMPLES


def int8_matrix(rows, cols, device="cpu", seed=0):
    g = torch.Generator().manual_seed(seed)
    values = torch.randint(-128, 128, (rows, cols), generator=g, dtype=torch.int8)
    scales = (torch.rand(rows, -(-cols // 32), generator=g) / 64).half()
    return Int8Matrix(values.to(device), scales.to(device))


def plain_matrix(rows, cols, dtype, device="cpu", seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(rows, cols, generator=g).to(dtype).to(device)


def make_weight(kind, rows, cols, device, seed=0):
    """A weight and its float64 values."""
    if kind == "int8":
        weight = int8_matrix(rows, cols, device, seed)
        return weight, weight.dequantise().double()
    weight = plain_matrix(rows, cols, getattr(torch, kind), device, seed)
    return weight, weight.double()


def check_product(kind, tokens, rows, cols, number_format, device, add, seed):
    weight, exact = make_weight(kind, rows, cols, device, seed)
    g = torch.Generator().manual_seed(seed + 1)
    x = torch.randn(tokens, cols, generator=g).to(number_format).to(device)
    before = torch.randn(tokens, rows, generator=g).to(device)
    out = before.clone()
    linear_small(x, weight, out, add=add)
    expected = x.double() @ exact.T
    size = x.double().abs() @ exact.abs().T  # what rounding errors are relative to
    if add:
        expected += before.double()
        size += before.double().abs()
    # Weights of 8 bits meet several tokens rounded to the number format.
    rounding = 2e-3 if kind == "int8" and number_format == torch.bfloat16 and tokens > 1 else 0
    assert ((out.double() - expected).abs() <= (rounding + 1e-5) * size + 1e-6).all()


KINDS = st.sampled_from(
    [("bfloat16", "bfloat16"), ("float32", "float32"), ("int8", "bfloat16"), ("int8", "float32")]
)


@given(
    kinds=KINDS,
    tokens=st.integers(1, 16),
    rows=st.integers(1, 40),
    cols=st.integers(1, 300),
    add=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=EXAMPLES)
def test_any_shape(kinds, tokens, rows, cols, add, seed):
    check_product(kinds[0], tokens, rows, cols, getattr(torch, kinds[1]), DEVICE, add, seed)


@pytest.mark.parametrize("tokens", [1, 2, 16])
@pytest.mark.parametrize("kind", ["bfloat16", "float32", "int8"])
@pytest.mark.parametrize("cols", [4096, 4096 + 64])
def test_rows_of_more_than_one_block(kind, tokens, cols, device):
    number_format = torch.float32 if kind == "float32" else torch.bfloat16
    check_product(kind, tokens, 33, cols, number_format, device, False, 3)


@pytest.mark.parametrize("cols", [32, 64, 128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("tokens", [1, 4])
def test_rows_of_one_whole_block(tokens, cols, device):
    """Each is compiled for itself, and laid out over a block's threads in another way."""
    check_product("int8", tokens, 9, cols, torch.bfloat16, device, True, 4)


def test_repeats_are_equal(device):
    """No sum depends on the order in which programs run."""
    weight, _ = make_weight("bfloat16", 64, 512, device)
    x = plain_matrix(5, 512, torch.bfloat16, device, 1)
    outs = [torch.empty(5, 64, device=device) for _ in range(3)]
    for out in outs:
        linear_small(x, weight, out)
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])


@pytest.mark.parametrize("cols", [32, 50, 1100])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dequantise_rounds_once(cols, dtype, device):
    weight = int8_matrix(9, cols, device)
    out = torch.full((4, cols), torch.nan, dtype=dtype, device=device)
    dequantise(weight, out, first=3)
    expected = weight.dequantise()[3:7].to(dtype)
    if device.type == "cpu" and dtype == torch.bfloat16:  # the interpreter rounds towards zero
        torch.testing.assert_close(out, expected, rtol=2**-7, atol=0)
    else:
        assert torch.equal(out, expected)


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "int8"])
@pytest.mark.parametrize("cols", [16, 1030])
def test_embedding(kind, cols, device):
    weight, exact = make_weight(kind, 20, cols, device)
    x = torch.full((4, cols), torch.nan, device=device)
    embed_rows(torch.tensor([19, 0, -1, 7], device=device), weight, x)
    assert torch.equal(x[[0, 1, 3]], exact[[19, 0, 7]].float())
    assert (x[2] == 0).all()
    if device.type == "cuda" and isinstance(weight, torch.Tensor):  # a table that stays on the host
        there = torch.full_like(x, torch.nan)
        embed_rows(torch.tensor([19, 0, -1, 7], device=device), weight.cpu().pin_memory(), there)
        assert torch.equal(there, x)


def test_wrong_shapes_are_refused(device):
    weight = plain_matrix(8, 16, torch.float32, device)
    with pytest.raises(ValueError, match="1 to 16 tokens, not 17"):
        linear_small(torch.zeros(17, 16, device=device), weight, torch.zeros(17, 8, device=device))
    with pytest.raises(ValueError, match="does not give"):
        linear_small(torch.zeros(1, 15, device=device), weight, torch.zeros(1, 8, device=device))
    with pytest.raises(ValueError, match="do not fill"):
        dequantise(int8_matrix(8, 32, device), torch.zeros(4, 32, device=device), first=5)
    with pytest.raises(ValueError, match="do not fill"):
        embed_rows(
            torch.zeros(2, dtype=torch.int64, device=device), weight, torch.zeros(3, 16, device=device)
        )
