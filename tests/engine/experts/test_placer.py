"""Residents that are copied while the bank is filled, and RAM that is given back."""

import itertools

import numpy as np
import pytest
import torch

from engine.checkpoint.reader import Checkpoint
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.placer import Placer
from engine.experts.slots import GpuExperts

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
        ],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("keep", [True, False])
def test_residents_are_read_first_and_copied_by_the_threads_that_read_them(make_model, device, keep):
    model = make_model(hidden_size=64, intermediate_size=96)
    resident = np.zeros((2, 4), dtype=bool)
    resident[1, 1] = resident[1, 3] = resident[0, 2] = True
    expected = ExpertBank(model.config)
    bank = ExpertBank(model.config)
    gpu = GpuExperts(model.config, torch.device(device), resident)
    placer, order = Placer(bank, gpu, keep=keep), []

    def filled(layer, expert):
        order.append((layer, expert))
        placer(layer, expert)

    with Checkpoint(model.path) as checkpoint:
        expected.fill(checkpoint)
        bank.fill(checkpoint, threads=1, first=resident, filled=filled)
    assert set(order[:3]) == {(1, 1), (1, 3), (0, 2)}
    assert sorted(order) == sorted(all_experts(model.config))
    for layer, expert in all_experts(model.config):
        wanted = expected.block(layer, expert)
        if resident[layer, expert]:
            assert torch.equal(gpu.block(gpu.place(layer, expert)).cpu(), wanted)
        if keep or not resident[layer, expert]:
            assert torch.equal(bank.block(layer, expert), wanted)
        else:
            assert not bank.block(layer, expert).any()
    assert (bank.held == (keep | ~resident)).all()


class Notes:
    def __init__(self):
        self.addresses = []

    def register(self, block):
        self.addresses.append((block.data_ptr(), len(block)))
        return True

    def unregister(self, block):
        self.addresses.remove((block.data_ptr(), len(block)))
        return True


def test_what_was_given_back_is_not_pinned(make_model):
    bank = ExpertBank(make_model().config)
    bank.drop(0, 1)
    bank.drop(1, 3)
    notes = Notes()
    assert bank.pin(notes).wait(10)
    assert {item for item in all_experts(bank.config) if bank.pinned(*item)} == {
        item for item in all_experts(bank.config) if item not in ((0, 1), (1, 3))
    }
    pinned = sorted(notes.addresses)
    assert all(begin + size <= other for (begin, size), (other, _) in itertools.pairwise(pinned))
    with pytest.raises(RuntimeError, match="pinned"):
        bank.drop(0, 0)
    bank.close()
    assert notes.addresses == []
    bank.close()
