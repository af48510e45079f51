from __future__ import annotations

import pytest
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


def test_calls_take_experts_in_turn_from_blocks_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = list(torch.zeros(3, 3 * 2 * 32 * 32 + 64, dtype=torch.uint8))
    taken: list[tuple[int, torch.Size]] = []

    def note(x: torch.Tensor, flat: torch.Tensor, intermediate: int) -> torch.Tensor:
        taken.append((flat.data_ptr(), torch_expert(x, flat, intermediate).shape))
        return x

    monkeypatch.setattr("engine.bench.torch_expert.torch_expert", note)
    call = torch_call(blocks, 32, 32, tokens=2, experts=2)
    call()
    call()
    first, second, third = (block.data_ptr() for block in blocks)
    assert taken == [(block, (2, 32)) for block in (first, second, third, first)]


def test_torch_gets_its_threads_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
