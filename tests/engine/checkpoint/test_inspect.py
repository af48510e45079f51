"""Model folders: what a sound one says, and that each fault is named with its file, cause and action."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint.inspect import STARTER_KEY, inspect_model
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.tensors import load_tensor
from engine.errors import CheckpointError


@pytest.fixture(scope="module")
def sharded(make_model):
    return make_model(shards=3)


@pytest.fixture
def copy(sharded, tmp_path):
    """A sharded model that a test may damage."""
    return shutil.copytree(sharded.path, tmp_path / "Some-Mixtral")


def refusal(path):
    with pytest.raises(CheckpointError) as raised:
        inspect_model(path)
    error = raised.value
    assert error.what
    assert error.why
    assert error.action
    return error


def change_config(path, **changes):
    file = path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_sound_model_is_described(copy, sharded):
    info = inspect_model(copy)
    sizes = {name: 2 * weight.numel() for name, weight in sharded.weights.items()}
    experts = {name: size for name, size in sizes.items() if ".experts." in name}
    assert info.name == "Some-Mixtral"
    assert info.total_bytes == sum(sizes.values())
    assert info.other_bytes == info.total_bytes - sum(experts.values())
    assert info.expert_bytes == sum(
        size for name, size in experts.items() if ".0.block" in name and "s.1." in name
    )
    assert info.context_length == 512
    assert info.kv_bytes_per_token(2) == 2 * 2 * 2 * 12 * 2
    assert not info.is_starter


def test_the_starter_says_so_in_its_config(copy):
    change_config(copy, **{STARTER_KEY: True})
    assert inspect_model(copy).is_starter


def test_a_hub_cache_snapshot_is_named_after_its_repository(sharded, tmp_path):
    folder = tmp_path / "models--owner--Mixtral-Tiny" / "snapshots" / "0123abc"
    shutil.copytree(sharded.path, folder)
    assert inspect_model(folder).name == "Mixtral-Tiny"


def test_inspection_does_not_read_weights(copy, monkeypatch):
    def refuse(*_):
        raise AssertionError("weights were read")

    monkeypatch.setattr(Checkpoint, "read_into", refuse)
    assert inspect_model(copy).total_bytes > 0


def test_no_folder(tmp_path):
    assert "does not exist" in refusal(tmp_path / "absent").what


def test_no_config(copy):
    (copy / "config.json").unlink()
    assert "config.json is missing" in refusal(copy).what


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", '{"model_type": '])
def test_unreadable_config(copy, text):
    (copy / "config.json").write_text(text)
    assert "config.json is not readable" in refusal(copy).what


def test_another_model_type(copy):
    change_config(copy, model_type="llama")
    error = refusal(copy)
    assert "not a Mixtral model" in error.what
    assert "'llama'" in error.why


def test_a_missing_shard(copy):
    (copy / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors is missing" in refusal(copy).what


def test_a_truncated_shard(copy):
    file = copy / "model-00003-of-00003.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    error = refusal(copy)
    assert file.name in error.what
    assert "100 bytes too early" in error.why


def test_a_missing_tensor(copy):
    name = "model.layers.1.block_sparse_moe.experts.2.w3.weight"
    index = copy / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    del table["weight_map"][name]
    index.write_text(json.dumps(table))
    assert name in refusal(copy).why


def test_an_index_that_names_the_wrong_shard(copy):
    name = "model.norm.weight"
    index = copy / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    files = sorted(set(table["weight_map"].values()) - {table["weight_map"][name]})
    table["weight_map"][name] = files[0]
    index.write_text(json.dumps(table))
    error = refusal(copy)
    assert files[0] in error.what
    assert name in error.why


@pytest.mark.parametrize(
    "weight_map", [None, [], {"a": 3}, {"a": "../a.safetensors"}, {"a": "x/y"}, {"a": ".."}]
)
def test_an_unusable_index(copy, weight_map):
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert "model.safetensors.index.json" in refusal(copy).what


def test_a_wrong_shape(copy):
    change_config(copy, intermediate_size=41)
    error = refusal(copy)
    assert "do not match" in error.what
    assert "[40, 48]" in error.why
    assert "[41, 48]" in error.why


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float8_e4m3fn])
def test_a_wrong_number_format(make_model, tmp_path, dtype):
    model = make_model()
    path = shutil.copytree(model.path, tmp_path / "m")
    file = path / "model.safetensors"
    weights = load_file(file)
    name = "model.layers.0.block_sparse_moe.experts.0.w2.weight"
    weights[name] = weights[name].to(dtype)
    save_file(weights, file)
    assert name in refusal(path).why


def test_norms_and_routers_may_be_wider(make_model, tmp_path):
    path = shutil.copytree(make_model().path, tmp_path / "m")
    file = path / "model.safetensors"
    weights = load_file(file)
    for name, weight in weights.items():
        if weight.ndim == 1 or name.endswith("gate.weight"):
            weights[name] = weight.float()
    save_file(weights, file)
    inspect_model(path)
    with Checkpoint(path) as checkpoint:
        norm = load_tensor(checkpoint, "model.norm.weight", (48,), torch.float32)
        assert torch.equal(norm, weights["model.norm.weight"])


@pytest.mark.parametrize(
    ("file", "said"),
    [("model.gguf", "GGUF"), ("pytorch_model.bin", "pickle"), ("other.safetensors", "other names")],
)
def test_other_weights_are_recognised(copy, file, said):
    for other in (*copy.glob("*.safetensors"), copy / "model.safetensors.index.json"):
        other.unlink()
    (copy / file).write_bytes(b"")
    assert said in refusal(copy).why


@pytest.mark.parametrize("missing", [[], ["preadv"], ["preadv", "pread"]], ids=["Linux", "macOS", "Windows"])
def test_tensors_are_read_exactly(sharded, monkeypatch, missing):
    """With each of the ways to read at a position that some system has."""
    for name in missing:
        monkeypatch.delattr(os, name)
    with Checkpoint(sharded.path) as checkpoint:
        for name, weight in sharded.weights.items():
            assert torch.equal(load_tensor(checkpoint, name, tuple(weight.shape), torch.bfloat16), weight)
        with pytest.raises(CheckpointError):
            load_tensor(checkpoint, "model.norm.weight", (47,), torch.bfloat16)


def test_a_file_that_shrinks_while_it_is_read(copy):
    with Checkpoint(copy) as checkpoint:
        file = copy / "model-00001-of-00003.safetensors"
        info = max((i for i in checkpoint.tensors.values() if i.file == file), key=lambda i: i.offset)
        file.write_bytes(file.read_bytes()[:-2])
        with pytest.raises(CheckpointError, match="changed while it was being read"):
            checkpoint.read_into(info, memoryview(bytearray(info.nbytes)))


def test_a_folder_of_a_gguf_model_is_recognised(tmp_path):
    (tmp_path / "mixtral.Q4_K_M.gguf").write_bytes(b"GGUF")
    error = refusal(tmp_path)
    assert "config.json is missing" in error.what
    assert "mixtral.Q4_K_M.gguf there is a GGUF file" in error.why
