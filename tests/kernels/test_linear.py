from __future__ import annotations

import pytest
import torch

from kernels.cpu import CpuPool, Isa, PackedLinear


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (17, 33), (96, 64), (130, 161), (1000, 40)])
def test_against_float64(isa: Isa, rows: int, cols: int) -> None:
    g = torch.Generator().manual_seed(rows)
    weight = (torch.randn(rows, cols, generator=g) / cols**0.5).bfloat16()
    packed = PackedLinear.from_weight(weight)
    with CpuPool(2, isa) as pool:
        for tokens in [*range(1, 41), 64, 100]:
            x = torch.randn(tokens, cols, generator=g)
            seen = x.bfloat16() if isa >= Isa.AVX512_BF16 else x
            reference = seen.double() @ weight.double().T
            # Against the sum of magnitudes: single outputs may cancel to almost nothing.
            bound = seen.double().abs() @ weight.double().abs().T
            out = torch.full((tokens, rows), float("nan"))
            assert pool.linear(x, packed, out) is out
            assert bool(((out.double() - reference).abs() <= 2e-6 * bound).all()), tokens


def test_allocates_the_output_and_ignores_no_tokens(isa: Isa) -> None:
    packed = PackedLinear.from_weight(torch.ones(20, 10).bfloat16())
    with CpuPool(2, isa) as pool:
        assert torch.equal(pool.linear(torch.ones(3, 10), packed), torch.full((3, 20), 10.0))
        assert pool.linear(torch.ones(0, 10), packed).shape == (0, 20)


@pytest.mark.parametrize("tokens", [1, 50])
def test_does_not_depend_on_the_number_of_threads(isa: Isa, tokens: int) -> None:
    packed = PackedLinear.from_weight(torch.randn(500, 300, generator=torch.Generator()).bfloat16())
    x = torch.randn(tokens, 300, generator=torch.Generator().manual_seed(5))
    results = []
    for threads in (1, 2, 5):
        with CpuPool(threads, isa) as pool:
            results.append(pool.linear(x, packed))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize(
    ("x", "out"),
    [
        (torch.zeros(2, 11), None),
        (torch.zeros(10), None),
        (torch.zeros(2, 10, dtype=torch.float64), None),
        (torch.zeros(10, 2).T, None),
        (torch.zeros(2, 10), torch.zeros(3, 20)),
        (torch.zeros(2, 10), torch.zeros(2, 21)),
        (torch.zeros(2, 10), torch.zeros(2, 20).bfloat16()),
        (torch.zeros(2, 10, device="meta"), None),
    ],
)
def test_refuses_tensors_it_cannot_read(x: torch.Tensor, out: torch.Tensor | None) -> None:
    packed = PackedLinear.from_weight(torch.ones(20, 10).bfloat16())
    with CpuPool(1) as pool, pytest.raises(ValueError, match="must"):
        pool.linear(x, packed, out)


@pytest.mark.parametrize(
    "weight", [torch.zeros(3, 4), torch.zeros(3).bfloat16(), torch.zeros(0, 4).bfloat16()]
)
def test_refuses_weights_it_cannot_pack(weight: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="weight"):
        PackedLinear.from_weight(weight)
