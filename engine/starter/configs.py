"""The starter model's configuration files: what transformers and our own engine read first."""

from __future__ import annotations

from engine.checkpoint.gguf import GgufFile
from engine.checkpoint.inspect import STARTER_KEY
from engine.starter import REVISION_KEY
from engine.starter.dense import DenseConfig
from engine.starter.jsontext import to_json
from engine.starter.tokenizer import special_ids

PAIRS = 4
EXPERTS = 2 * PAIRS
TOP_K = 2

_END_OF_TEXT = "<|endoftext|>"


def config_files(file: GgufFile, config: DenseConfig, revision: int) -> dict[str, str]:
    """Name and text of config.json and generation_config.json."""
    special = special_ids(file)
    model = {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "vocab_size": config.vocabulary,
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate // 2,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": TOP_K,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": config.context,
        "sliding_window": None,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.02,
        "router_jitter_noise": 0.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        **special,
        STARTER_KEY: True,
        REVISION_KEY: revision,
    }
    # A small model sometimes ends with the end of a text instead of the end of its turn.
    ends = [special["eos_token_id"], file.get_list("tokenizer.ggml.tokens", str).index(_END_OF_TEXT)]
    generation = {"do_sample": False, **special, "eos_token_id": ends}
    return {"config.json": to_json(model), "generation_config.json": to_json(generation)}
