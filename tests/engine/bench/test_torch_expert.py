from __future__ import annotations

import torch

from engine.bench.torch_expert import torch_call, torch_expert, torch_threads


def test_it_is_the_experts_arithmetic() -> None:
    hidden, intermediate = 48, 80
    w1, w3 = torch.randn(2, intermediate, hidden).bfloat16() * 0.1
    w2, x = torch.randn(hidden, intermediate).bfloat16() * 0.1, torch.randn(5, hidden).bfloat16()
    flat = torch.cat((w1.flatten(), w3.flatten(), w2.flatten()))
    gate, up = x.double() @ w1.double().T, x.double() @ w3.double().T
    expected = (gate / (1 + torch.exp(-gate)) * up) @ w2.double().T
    found = torch_expert(x, flat, intermediate).double()
    assert (found - expected).norm() < 0.02 * expected.norm()


def test_a_call_takes_blocks_that_are_longer_than_three_matrices() -> None:
    block = torch.zeros(3 * 2 * 32 * 32 + 64, dtype=torch.uint8)
    torch_call([block, block, block], 32, 32, tokens=2, experts=2)()


def test_torch_gets_its_threads_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
