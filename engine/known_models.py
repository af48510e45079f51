"""Sizes of the models that the program offers, so that a plan can be made before they are downloaded."""

from __future__ import annotations

from pathlib import Path

from engine.checkpoint.inspect import STARTER_NAME, ModelInfo
from engine.models.config import MixtralConfig

MIXTRAL_8X7B = MixtralConfig(
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_layers=32,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    num_experts=8,
    top_k=2,
    rms_norm_eps=1e-5,
    rope_theta=1e6,
    sliding_window=None,
    max_position_embeddings=32768,
    tie_word_embeddings=False,
)

# SmolLM2-135M with each dense FFN cut into the halves of four pairs of experts.
STARTER = MixtralConfig(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=768,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    num_experts=8,
    top_k=2,
    rms_norm_eps=1e-5,
    rope_theta=1e5,
    sliding_window=None,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)


def mixtral_8x7b(folder: Path = Path()) -> ModelInfo:
    """Mixtral-8x7B-Instruct as it will be in `folder` (by default: nowhere yet)."""
    return model_info("Mixtral-8x7B-Instruct", MIXTRAL_8X7B, folder, is_starter=False)


def starter(folder: Path = Path()) -> ModelInfo:
    """The starter model as it will be in `folder` (by default: nowhere yet)."""
    return model_info(STARTER_NAME, STARTER, folder, is_starter=True)


def model_info(
    name: str, config: MixtralConfig, folder: Path = Path(), *, is_starter: bool = False
) -> ModelInfo:
    """What a model of this configuration takes, whether or not it exists."""
    expert, other = 2 * config.expert_parameters, 2 * config.other_parameters
    return ModelInfo(
        path=folder,
        name=name,
        config=config,
        expert_bytes=expert,
        other_bytes=other,
        total_bytes=other + expert * config.num_layers * config.num_experts,
        context_length=config.max_position_embeddings,
        is_starter=is_starter,
    )
