"""Loading: progress, cancelling, threads that end, and the choice of device."""

import json
import shutil
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import arena, vram
from engine.checkpoint.inspect import inspect_model
from engine.errors import Cancelled, CheckpointError, HardwareError
from engine.models import loader
from engine.models.loader import compute_device, load_model
from engine.options import LoadOptions
from engine.placement import Placement
from engine.progress import CancelToken
from engine.units import format_bytes

CPU = LoadOptions(device="cpu", threads=2)


@pytest.fixture(scope="module")
def model(make_model):
    return make_model(shards=2)


def test_progress_ends_at_the_total(model):
    last = {}
    with load_model(model.path, CPU, progress=lambda step: last.__setitem__(step.what, step)) as loaded:
        assert loaded.info.config == model.config
    assert set(last) == {"Loading layers", "Loading experts"}
    assert all(step.done == step.total > 0 for step in last.values())


@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_cancelling_anywhere_leaves_no_thread(model, steps):
    cancel = CancelToken()
    seen = []

    def progress(step):
        seen.append(step)
        if len(seen) == steps:
            cancel.cancel()

    before = threading.active_count()
    with pytest.raises(Cancelled):
        load_model(model.path, CPU, progress=progress, cancel=cancel)
    assert len(seen) == steps
    assert threading.active_count() == before


def test_damage_found_while_loading_is_a_checkpoint_error(model, tmp_path):
    path = shutil.copytree(model.path, tmp_path / "m")
    file = sorted(path.glob("*.safetensors"))[-1]
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=file.name):
        load_model(path, CPU)


def test_a_placement_matters_only_with_a_second_device(model):
    everything = Placement(np.ones((2, 4), dtype=bool))
    with load_model(model.path, CPU, everything) as loaded:
        assert loaded.residents is None
    with load_model(model.path, CPU, everything, expert_device=torch.device("cpu")) as loaded:
        assert loaded.residents is not None
        assert loaded.residents.resident.all()


def test_devices():
    assert compute_device("cpu") == torch.device("cpu")
    if torch.cuda.is_available():
        assert compute_device("auto").type == "cuda"
    else:
        assert compute_device("auto") == torch.device("cpu")
        with pytest.raises(HardwareError, match="GPU"):
            compute_device("cuda")


def test_memory_is_freed_after_closing(model):
    """Nothing keeps a closed model alive: no cycle, no global."""
    loaded = load_model(model.path, CPU)
    arena = weakref.ref(loaded.bank.arena)
    loaded.close()
    del loaded
    assert arena() is None


@pytest.mark.parametrize("weight_format", ["bf16", "int4"])
def test_residents_that_are_not_kept_in_memory_are_computed_all_the_same(model, weight_format):
    """Only on the second device: their blocks in the arena read as zeros."""
    resident = np.random.default_rng(2).random((2, 4)) < 0.5
    options = LoadOptions(device="cpu", threads=2, precision=weight_format)
    logits = []
    for keep in (True, False):
        with load_model(
            model.path,
            options,
            Placement(resident),
            expert_device=torch.device("cpu"),
            keep_residents=keep,
        ) as loaded:
            assert (loaded.bank.held == (keep | ~resident)).all()
            for layer, expert in np.argwhere(resident):
                assert loaded.bank.block(int(layer), int(expert)).any() == keep
            cache = loaded.model.new_cache(20)
            logits.append(loaded.model.forward(torch.arange(20), cache, logits="all"))
    assert torch.equal(*logits)


def test_memory_that_the_system_does_not_take_back_is_told_and_nothing_else(model, monkeypatch):
    monkeypatch.setattr(arena, "give_back", lambda memory: False)
    resident = np.array([[True, False, False, False], [True, True, False, False]])
    placed = {"placement": Placement(resident), "expert_device": torch.device("cpu")}
    with load_model(model.path, CPU, **placed, keep_residents=False) as loaded:
        assert (loaded.bank.held == ~resident).all()
        [note] = loaded.notes
        assert format_bytes(3 * loaded.bank.layer(0).stride(0)) in note
        assert loaded.model.forward(torch.arange(20), loaded.model.new_cache(20)) is not None
    with load_model(model.path, CPU, **placed) as loaded:
        assert loaded.notes == ()


def test_closing_frees_the_places_of_experts_and_unpins_the_arena(model):
    class Notes:
        blocks = 0

        def register(self, block):
            self.blocks += 1
            return self.blocks < 6

        def unregister(self, block):
            self.blocks -= 1
            return True

    notes = Notes()
    everything = Placement(np.ones((2, 4), dtype=bool))
    with load_model(model.path, CPU, everything, expert_device=torch.device("cpu")) as loaded:
        assert loaded.notes == ()
        loaded.bank.pin(notes).wait(10)
        assert len(loaded.notes) == 1
        assert "pinned" in loaded.notes[0]
        data = weakref.ref(loaded.residents.data)
    assert notes.blocks == 6 - 5
    assert data() is None


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.layers.1.input_layernorm.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.block_sparse_moe.gate.weight",
        "model.norm.weight",
        "lm_head.weight",
    ],
)
@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_a_weight_beside_the_experts_that_is_not_finite_is_named(model, tmp_path, name, bad):
    path = shutil.copytree(model.path, tmp_path / "m")
    file = path / json.loads((path / "model.safetensors.index.json").read_text())["weight_map"][name]
    weights = load_file(file)
    position = tuple(size - 1 for size in weights[name].shape)
    weights[name][position] = bad
    save_file(weights, file)
    with pytest.raises(CheckpointError) as caught:
        load_model(path, CPU)
    assert name in caught.value.why
    assert str(list(position)) in caught.value.why
    assert caught.value.action


@pytest.mark.parametrize("why", ["", "Triton is not installed"])
def test_a_gpu_without_our_kernels_is_told(model, monkeypatch, why):
    monkeypatch.setattr(loader.support, "why_not", lambda device: why)
    with load_model(model.path, CPU) as loaded:
        assert loaded.notes == ()  # nobody misses them on the CPU
        there = replace(loaded, model=SimpleNamespace(device=torch.device("cuda", 0)))
        assert [why in note for note in there.notes] == ([True] if why else [])


def test_a_bound_on_the_gpu_ends_when_loading_fails(model, monkeypatch):
    bounds = []
    monkeypatch.setattr(vram, "limit", lambda device, budget: bounds.append(budget))
    monkeypatch.setattr(vram, "unlimit", lambda device: bounds.append(None))

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(loader, "GpuExperts", refuse)
    info, options = inspect_model(model.path), LoadOptions(device="cuda", vram_budget=1 << 30)
    weights, fill, pool = None, None, None  # what would be asked for later
    with pytest.raises(torch.OutOfMemoryError):
        loader.assemble(info, weights, fill, None, options, pool, torch.device("cuda", 0))
    assert bounds == [1 << 30, None]
