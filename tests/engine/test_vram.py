"""The bound on a GPU's memory, and what CUDA itself takes of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine import vram
from engine.budget import CUDA_DEVICE_BYTES, CUDA_LATER_BYTES
from engine.hardware import GpuInfo, GpuState, detect
from engine.hardware.gpu import GpuReport
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import Placement
from engine.units import GIB, MIB

on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def test_the_allocator_gets_what_cuda_leaves():
    total = 24 * GIB
    share = vram.allocator_share(8 * GIB, 500 * MIB, total)
    assert share * total == pytest.approx(8 * GIB - 500 * MIB - CUDA_LATER_BYTES)
    assert vram.allocator_share(100 * MIB, 500 * MIB, total) == 0
    assert vram.allocator_share(100 * GIB, 500 * MIB, total) == 1


def test_both_memories_are_given_back(monkeypatch):
    given_back = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: given_back.append("GPU"))
    monkeypatch.setattr(torch._C, "_host_emptyCache", lambda: given_back.append("pinned"), raising=False)
    vram.empty_caches()
    assert given_back == ["GPU", "pinned"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_pinned_memory_goes_back_to_the_system():
    vram.empty_caches()
    before = torch.cuda.host_memory_stats()["allocated_bytes.current"]
    table = torch.empty(64 * MIB, dtype=torch.uint8).pin_memory()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] >= before + 64 * MIB
    del table
    vram.empty_caches()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] == before


def test_without_a_gpu_there_is_nothing_to_start():
    hardware = detect().without_gpu()
    assert vram.start_cuda(hardware) is hardware


@pytest.mark.parametrize(("free", "taken"), [(700, 250), (1200, CUDA_DEVICE_BYTES // MIB)])
def test_what_cuda_takes_is_not_known_where_others_gave_memory_back_meanwhile(monkeypatch, free, taken):
    gpu = GpuInfo(0, "RTX", "GPU-1", 4 * GIB, 1000 * MIB, "580", (8, 9))
    hardware = replace(detect(), gpus=(gpu,), gpu_state=GpuState.READY)
    after = GpuReport((replace(gpu, vram_free=free * MIB),), GpuState.READY)
    monkeypatch.setattr(vram, "_taken", {})
    monkeypatch.setattr(vram, "_touch", lambda _: 50 * MIB)
    monkeypatch.setattr(vram, "detect_gpus", lambda _: after)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    started = vram.start_cuda(hardware).gpu
    assert started is not None
    assert (started.cuda_bytes, started.vram_free) == (taken * MIB, 1000 * MIB)
    assert vram.cuda_bytes(torch.device("cuda", 0)) == taken * MIB


@pytest.mark.parametrize("mark", [pytest.param(None, marks=on_gpu)])
def test_what_cuda_takes_is_known_and_counted_as_free(mark):
    first = vram.start_cuda(detect())
    again = vram.start_cuda(detect())
    for hardware in (first, again):
        gpu = hardware.gpu
        assert gpu is not None
        assert 100 * MIB < gpu.cuda_bytes < 4 * CUDA_DEVICE_BYTES
    assert vram.cuda_bytes(torch.device("cuda", 0)) == again.gpu.cuda_bytes
    print(f"CUDA itself: {again.gpu.cuda_bytes / MIB:.0f} MiB")


@pytest.mark.parametrize("mark", [pytest.param(None, marks=on_gpu)])
def test_nothing_beyond_the_budget_is_allocated(mark, make_model):
    vram.start_cuda(detect())
    device = torch.device("cuda", torch.cuda.current_device())
    torch.cuda.empty_cache()
    budget = vram.used_bytes(device) + CUDA_LATER_BYTES + 256 * MIB
    options = LoadOptions(device="cuda", vram_budget=budget)
    everything = Placement(np.ones((2, 4), dtype=bool))
    with load_model(make_model().path, options, everything) as loaded:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(512 * MIB, dtype=torch.uint8, device=device)
        assert loaded.model.forward(torch.arange(9), loaded.model.new_cache(9)) is not None
        assert vram.used_bytes(device) <= budget
    torch.empty(512 * MIB, dtype=torch.uint8, device=device)  # the bound ends with the model
