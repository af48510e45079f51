"""Random Mixtral models on disk, in Mixtral's tensor names, with weights that bf16 represents exactly."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.models import tensors
from engine.models.config import MixtralConfig

SMALL = {
    "model_type": "mixtral",
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True)
class ModelOnDisk:
    """A folder with a model, its raw config.json, and its weights (bf16) by name."""

    path: Path
    raw: dict
    weights: dict

    @property
    def config(self):
        return MixtralConfig.from_dict(self.raw)


def random_weights(config, seed):
    """Weights under which every layer matters and router logits have a spread of about two."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in tensors.expected(config):
        values = torch.randn(shape, generator=generator)
        if len(shape) == 1:
            values = 1 + 0.2 * values
        elif name != tensors.EMBEDDINGS:
            values *= (2.0 if name.endswith("gate.weight") else 1.0) / shape[1] ** 0.5
        weights[name] = values.to(torch.bfloat16)
    return weights


@pytest.fixture(scope="session")
def make_model(tmp_path_factory):
    """`make_model(seed=0, shards=1, **config)` writes a model whose config.json is SMALL with changes."""

    def make(seed=0, shards=1, **changes):
        raw = SMALL | changes
        if "rope_parameters" in changes:
            del raw["rope_theta"]
        path = tmp_path_factory.mktemp("model")
        weights = random_weights(MixtralConfig.from_dict(raw), seed)
        (path / "config.json").write_text(json.dumps(raw))
        if shards == 1:
            save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        else:
            weight_map = {}
            names = sorted(weights)
            for number in range(shards):
                file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
                part = {name: weights[name] for name in names[number::shards]}
                save_file(part, path / file, metadata={"format": "pt"})
                weight_map |= dict.fromkeys(part, file)
            (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        return ModelOnDisk(path, raw, weights)

    return make
