"""The arena of packed experts: contents, alignment, faults and cancelling while it is filled."""

import json
import shutil
import threading

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint.reader import Checkpoint
from engine.errors import Cancelled, CheckpointError
from engine.experts.bank import ExpertBank, all_experts
from engine.models.tensors import expert as expert_name
from engine.progress import CancelToken
from kernels.cpu import unpack_expert


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(shards=2)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_expert_comes_back_exactly(model, threads):
    bank = ExpertBank(model.config)
    steps = []
    with Checkpoint(model.path) as checkpoint:
        bank.fill(checkpoint, threads=threads, progress=steps.append)
    for layer, expert in all_experts(model.config):
        block = bank.block(layer, expert)
        assert block.data_ptr() % 64 == 0
        w1, w3, w2 = unpack_expert(block, bank.shape)
        for name, matrix in (("w1", w1), ("w2", w2), ("w3", w3)):
            assert torch.equal(matrix, model.weights[expert_name(layer, expert, name)])
    assert [step.done for step in steps] == list(range(1, 9))
    assert {step.total for step in steps} == {8}


def test_blocks_do_not_overlap(model):
    bank = ExpertBank(model.config)
    for number, (layer, expert) in enumerate(all_experts(model.config)):
        bank.block(layer, expert).fill_(number + 1)
    for number, (layer, expert) in enumerate(all_experts(model.config)):
        assert (bank.block(layer, expert) == number + 1).all()


def test_cancelling_stops_the_filling_and_its_threads(model):
    cancel = CancelToken()
    steps = []

    def progress(step):
        steps.append(step)
        if len(steps) == 2:
            cancel.cancel()

    with Checkpoint(model.path) as checkpoint, pytest.raises(Cancelled):
        ExpertBank(model.config).fill(checkpoint, progress=progress, cancel=cancel)
    assert len(steps) == 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("bank")]


def test_a_fault_in_one_expert_ends_the_filling(model, tmp_path):
    path = shutil.copytree(model.path, tmp_path / "m")
    name = expert_name(1, 2, "w3")
    file = path / json.loads((path / "model.safetensors.index.json").read_text())["weight_map"][name]
    weights = load_file(file)
    weights[name] = weights[name][:-1].clone()
    save_file(weights, file)
    with Checkpoint(path) as checkpoint, pytest.raises(CheckpointError, match=name):
        ExpertBank(model.config).fill(checkpoint)
