"""The names and shapes of a Mixtral checkpoint's tensors, as they are on disk. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator

from engine.models.config import MixtralConfig

EMBEDDINGS = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
OUTPUT = "lm_head.weight"


def layer(index: int, part: str) -> str:
    """The name of a tensor of one layer, e.g. part "self_attn.q_proj"."""
    return f"model.layers.{index}.{part}.weight"


def expert(index: int, number: int, matrix: str) -> str:
    """The name of "w1" (gate), "w2" (down) or "w3" (up) of an expert."""
    return layer(index, f"block_sparse_moe.experts.{number}.{matrix}")


def expected(config: MixtralConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor that the model needs: its name and its shape, rows (outputs) first."""
    hidden, inner = config.hidden_size, config.intermediate_size
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    yield EMBEDDINGS, (config.vocab_size, hidden)
    for index in range(config.num_layers):
        yield layer(index, "input_layernorm"), (hidden,)
        yield layer(index, "self_attn.q_proj"), (queries, hidden)
        yield layer(index, "self_attn.k_proj"), (keys, hidden)
        yield layer(index, "self_attn.v_proj"), (keys, hidden)
        yield layer(index, "self_attn.o_proj"), (hidden, queries)
        yield layer(index, "post_attention_layernorm"), (hidden,)
        yield layer(index, "block_sparse_moe.gate"), (config.num_experts, hidden)
        for number in range(config.num_experts):
            yield expert(index, number, "w1"), (inner, hidden)
            yield expert(index, number, "w2"), (hidden, inner)
            yield expert(index, number, "w3"), (inner, hidden)
    yield FINAL_NORM, (hidden,)
    if not config.tie_word_embeddings:
        yield OUTPUT, (config.vocab_size, hidden)
