from __future__ import annotations

from pathlib import Path

import pytest

from engine import known_models
from engine.checkpoint.inspect import inspect_model
from engine.models.config import MixtralConfig
from engine.units import MIB


def test_mixtral_has_the_published_size() -> None:
    info = known_models.mixtral_8x7b()
    assert info.expert_bytes == 336 * MIB
    assert info.total_bytes / 2 == pytest.approx(46.7e9, rel=0.001)  # parameters, as Mistral counts them
    assert info.kv_bytes_per_token(2) == 128 * 1024
    published = {
        "model_type": "mixtral",
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-05,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
    }
    assert info.config == MixtralConfig.from_dict(published)


@pytest.mark.starter
def test_the_starter_model_is_planned_as_it_will_be(starter_dir: Path) -> None:
    made, planned = inspect_model(starter_dir), known_models.starter()
    assert made.config == planned.config
    assert (made.total_bytes, made.is_starter) == (planned.total_bytes, planned.is_starter)
