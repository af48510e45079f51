"""The arena of packed experts: contents, alignment, faults and cancelling while it is filled."""

import errno
import json
import os
import shutil
import threading
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint.reader import Checkpoint
from engine.errors import Cancelled, CheckpointError
from engine.experts import fill
from engine.experts.bank import ExpertBank, all_experts
from engine.models.tensors import expert as expert_name
from engine.progress import CancelToken
from kernels.cpu import unpack_expert
from kernels.formats import WeightFormat


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


@pytest.mark.parametrize("fault", [None, ValueError("a fault")])
def test_what_ends_the_filling_stops_the_experts_under_way(fault):
    """Not only those that have not begun: here the other one would never end by itself."""
    cancel, begun, left = CancelToken(), threading.Event(), []

    def read(layer, expert, check):
        if expert == 0:
            begun.wait(10)
            if fault is not None:
                raise fault
            cancel.cancel()
        begun.set()
        try:
            while True:
                check()
                time.sleep(1e-3)
        except Cancelled:
            left.append(expert)
            raise

    with pytest.raises(Cancelled if fault is None else ValueError):
        fill.fill([(0, 0), (0, 1)], read, 2, lambda _: None, cancel)
    assert left in ([1], [0, 1], [1, 0])


def test_a_fault_in_one_expert_ends_the_filling(model, tmp_path):
    path = shutil.copytree(model.path, tmp_path / "m")
    name = expert_name(1, 2, "w3")
    file = path / json.loads((path / "model.safetensors.index.json").read_text())["weight_map"][name]
    weights = load_file(file)
    weights[name] = weights[name][:-1].clone()
    save_file(weights, file)
    with Checkpoint(path) as checkpoint, pytest.raises(CheckpointError, match=name):
        ExpertBank(model.config).fill(checkpoint)


@pytest.mark.parametrize("weight_format", WeightFormat)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(("matrix", "position"), [("w1", (0, 0)), ("w3", (39, 47)), ("w2", (33, 7))])
def test_a_weight_that_is_not_finite_is_named_with_its_tensor(
    model, tmp_path, weight_format, bad, matrix, position
):
    path, name = shutil.copytree(model.path, tmp_path / "m"), expert_name(1, 2, matrix)
    file = path / json.loads((path / "model.safetensors.index.json").read_text())["weight_map"][name]
    weights = load_file(file)
    weights[name][position] = bad
    save_file(weights, file)
    with Checkpoint(path) as checkpoint, pytest.raises(CheckpointError) as caught:
        ExpertBank(model.config, weight_format).fill(checkpoint)
    assert name in caught.value.why
    assert str(list(position)) in caught.value.why
    assert caught.value.action


def test_a_weight_too_large_for_few_bits_is_refused_there_and_only_there(model, tmp_path):
    path, name = shutil.copytree(model.path, tmp_path / "m"), expert_name(0, 1, "w2")
    file = path / json.loads((path / "model.safetensors.index.json").read_text())["weight_map"][name]
    weights = load_file(file)
    weights[name][5, 6] = 1e30
    save_file(weights, file)
    with Checkpoint(path) as checkpoint:
        ExpertBank(model.config).fill(checkpoint)
        with pytest.raises(CheckpointError, match="8 bits") as caught:
            ExpertBank(model.config, WeightFormat.INT8).fill(checkpoint)
    assert name in caught.value.why
    assert "[5, 6]" in caught.value.why
    assert "bf16" in caught.value.action


@pytest.mark.parametrize("native", [True, False], ids=["as here", "Windows"])
def test_large_matrices_are_read_in_several_parts(make_model, monkeypatch, native):
    """With little scratch, 16-row tiles still come whole."""
    monkeypatch.setattr(fill, "LOADING_SCRATCH", 1)
    monkeypatch.setattr(fill, "_SCRATCHES", 2)
    if not native:
        monkeypatch.setattr(fill, "can_pack_files", lambda: False)
    model = make_model(hidden_size=80, num_attention_heads=4, intermediate_size=136)
    assert fill.rows_at_once(80) == 16
    bank = ExpertBank(model.config)
    with Checkpoint(model.path) as checkpoint:
        bank.fill(checkpoint)
    for layer, expert in all_experts(model.config):
        w1, w3, w2 = unpack_expert(bank.block(layer, expert), bank.shape)
        for name, matrix in (("w1", w1), ("w2", w2), ("w3", w3)):
            assert torch.equal(matrix, model.weights[expert_name(layer, expert, name)])


@pytest.mark.parametrize("native", [True, False], ids=["as here", "Windows"])
def test_a_file_that_shrinks_while_experts_are_read(model, tmp_path, monkeypatch, native):
    if not native:
        monkeypatch.setattr(fill, "can_pack_files", lambda: False)
    path = shutil.copytree(model.path, tmp_path / "m")
    with Checkpoint(path) as checkpoint:
        last = max(checkpoint.tensors.values(), key=lambda info: (".experts." in info.name, info.offset))
        os.truncate(last.file, last.offset + 100)
        with pytest.raises(CheckpointError, match="changed while it was being read") as caught:
            ExpertBank(model.config).fill(checkpoint)
    assert f"{last.nbytes - 100:,} bytes before the end of {last.name}" in caught.value.why


def test_a_disk_that_fails_is_explained(model, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fill, "can_pack_files", lambda: True)  # on Windows, too
    monkeypatch.setattr(fill, "pack_expert_file_rows", refuse)
    with (
        Checkpoint(model.path) as checkpoint,
        pytest.raises(CheckpointError, match="cannot be read") as caught,
    ):
        ExpertBank(model.config).fill(checkpoint)
    assert os.strerror(errno.EIO) in caught.value.why
