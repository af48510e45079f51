"""config.json: what transformers writes is read the same, and what cannot run is refused by name."""

import json

import pytest
import transformers

from engine.errors import CheckpointError
from engine.models.config import MixtralConfig
from engine.models.tensors import expected

PLAIN = {
    "model_type": "mixtral",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_local_experts": 6,
    "num_experts_per_tok": 3,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 12345.0,
    "sliding_window": 77,
    "tie_word_embeddings": True,
}


def test_every_field_is_read():
    config = MixtralConfig.from_dict(PLAIN)
    assert config == MixtralConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=96,
        num_layers=3,
        num_heads=8,
        num_kv_heads=2,
        head_dim=8,
        num_experts=6,
        top_k=3,
        rms_norm_eps=1e-6,
        rope_theta=12345.0,
        sliding_window=77,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )


def test_what_transformers_writes_is_read(tmp_path):
    """Its defaults are Mixtral-8x7B's sizes."""
    theirs = transformers.MixtralConfig()
    theirs.save_pretrained(tmp_path)
    config = MixtralConfig.from_dict(json.loads((tmp_path / "config.json").read_text()))
    assert config.rope_theta == theirs.rope_parameters["rope_theta"] == 1e6
    assert (config.num_layers, config.hidden_size, config.head_dim, config.num_kv_heads) == (32, 4096, 128, 8)
    assert config.expert_parameters == 3 * 4096 * 14336
    assert config.kv_bytes_per_token(2) == 128 * 1024


@pytest.mark.parametrize("tied", [True, False])
def test_parameter_counts_are_those_of_the_tensors(tied):
    config = MixtralConfig.from_dict(PLAIN | {"tie_word_embeddings": tied, "head_dim": 10})
    total = 0
    for _, shape in expected(config):
        size = 1
        for length in shape:
            size *= length
        total += size
    experts = config.num_layers * config.num_experts * config.expert_parameters
    assert config.other_parameters + experts == total


def test_optional_fields_have_mixtrals_defaults():
    required = [
        "model_type",
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
    ]
    config = MixtralConfig.from_dict({key: PLAIN[key] for key in required})
    theirs = transformers.MixtralConfig()
    assert config.num_experts == theirs.num_local_experts
    assert config.top_k == theirs.num_experts_per_tok
    assert config.num_kv_heads == theirs.num_key_value_heads
    assert config.rms_norm_eps == theirs.rms_norm_eps
    assert config.rope_theta == theirs.rope_parameters["rope_theta"]
    assert config.max_position_embeddings == theirs.max_position_embeddings
    assert config.sliding_window is None
    assert not config.tie_word_embeddings


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_theta": 5e5},
        {"rope_theta": 5e5, "rope_scaling": None},
        {"rope_theta": 5e5, "rope_scaling": {"type": "default"}},
        {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
        {"rope_theta": 1.0, "rope_parameters": {"rope_theta": 5e5}},
        {"rope_theta": 5e5, "rope_parameters": None},
    ],
)
def test_every_way_to_write_the_rope_base(rope):
    assert MixtralConfig.from_dict(PLAIN | rope).rope_theta == 5e5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "qwen3_moe"}, "qwen3_moe"),
        ({"model_type": None}, "model_type"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, "linear"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e6}}, "llama3"),
        ({"rope_parameters": 3}, "rope_parameters"),
        ({"vocab_size": None}, "vocab_size is missing"),
        ({"hidden_size": "64"}, "hidden_size"),
        ({"hidden_size": 65}, "hidden_size"),
        ({"hidden_size": 24, "num_key_value_heads": 8}, "head_dim"),
        ({"intermediate_size": 0}, "intermediate_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"num_hidden_layers": 3.0}, "num_hidden_layers"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_experts_per_tok": 7}, "num_experts_per_tok"),
        ({"rms_norm_eps": -1e-5}, "rms_norm_eps"),
        ({"rope_theta": float("nan")}, "rope_theta"),
        ({"rope_theta": 10**400}, "rope_theta"),
        ({"sliding_window": -1}, "sliding_window"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ({"max_position_embeddings": 2**40}, "max_position_embeddings"),
    ],
)
def test_what_cannot_run_is_refused_by_name(change, named):
    with pytest.raises(CheckpointError) as raised:
        MixtralConfig.from_dict(PLAIN | change)
    assert named in raised.value.why
    assert raised.value.action
