"""Models that can be measured without their files: sizes alone, weights are drawn. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from engine.bench.errors import BenchError
from engine.checkpoint.inspect import ModelInfo
from engine.known_models import MIXTRAL_8X7B, STARTER, model_info
from engine.models.config import MixtralConfig

# For trying a benchmark in a second: nothing can be learnt from its figures.
_TINY = MixtralConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=96,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    num_experts=8,
    top_k=2,
    rms_norm_eps=1e-5,
    rope_theta=1e4,
    sliding_window=None,
    max_position_embeddings=8192,
    tie_word_embeddings=False,
)
PRESETS = {"mixtral-8x7b": MIXTRAL_8X7B, "starter": STARTER, "tiny": _TINY}


def preset_info(name: str, layers: int | None = None) -> ModelInfo:
    """The sizes of a preset, with fewer (or more) layers if asked. Raises BenchError for another name."""
    config = PRESETS.get(name)
    if config is None:
        raise BenchError(f"There is no preset “{name}”.", action=f"Choose from {', '.join(PRESETS)}.")
    if layers is None or layers == config.num_layers:
        return model_info(f"{name} (random weights)", config)
    if not 1 <= layers <= 1024:
        raise BenchError(f"A model cannot have {layers} layers.", action="Choose 1 to 1024.")
    named = f"{name} of {layers} layer{'s' if layers > 1 else ''} (random weights)"
    return model_info(named, replace(config, num_layers=layers))
