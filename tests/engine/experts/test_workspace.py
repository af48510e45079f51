"""An expert as plain matrices, a few panels at a time: together they are the whole expert."""

import pytest
import torch

from engine.checkpoint.reader import Checkpoint
from engine.experts import panels as panel_sizes
from engine.experts.bank import ExpertBank
from engine.experts.workspace import ExpertWorkspace
from engine.models.tensors import expert as expert_name
from kernels.cpu import unpack_expert
from kernels.formats import WeightFormat

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


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(seed=6, hidden_size=264, num_attention_heads=4, intermediate_size=1000)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("number_format", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("weight_format", WeightFormat)
@pytest.mark.parametrize("at_once", [64, 320, 4096])
@pytest.mark.parametrize("panels", [None, (0, 5), (7, 32), (31, 32)])
def test_the_parts_together_are_the_panels(
    model, monkeypatch, device, number_format, weight_format, at_once, panels
):
    monkeypatch.setattr(panel_sizes, "_NEURONS_AT_ONCE", at_once)
    bank = ExpertBank(model.config, weight_format)
    with Checkpoint(model.path) as checkpoint:
        bank.fill(checkpoint)
    workspace = ExpertWorkspace(bank.shape, number_format, torch.device(device))
    block = bank.block(1, 2).to(device)
    gates, ups, downs = [], [], []
    for gate_up, down in workspace.parts(block, panels):
        assert gate_up.dtype == down.dtype == number_format
        assert len(gate_up) <= 2 * at_once
        gate, up = gate_up.clone().chunk(2)
        gates.append(gate)
        ups.append(up)
        downs.append(down.clone())
    first, end = panels or (0, 32)
    rows = slice(first * 32, end * 32)
    w1, w3, w2 = unpack_expert(bank.block(1, 2), bank.shape)
    if weight_format is WeightFormat.BF16:
        assert torch.equal(w1, model.weights[expert_name(1, 2, "w1")])
    for ours, expected in ((gates, w1[rows]), (ups, w3[rows])):
        # A quantised weight need not be rounded to bf16 on its way to float32.
        torch.testing.assert_close(torch.cat(ours).cpu().bfloat16(), expected, rtol=0, atol=0)
    torch.testing.assert_close(torch.cat(downs, 1).cpu().bfloat16(), w2[:, rows], rtol=0, atol=0)
