"""A small random Llama as a GGUF file, written by the `gguf` library from transformers' model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "Ġ w"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def vocabulary() -> list[str]:
    """Special tokens, the 256 bytes, and what the merges make."""
    return [*SPECIAL, *sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]


def tiny_llama(layers: int = 7, seed: int = 0) -> LlamaForCausalLM:
    """A random model whose weights are representable in bf16, in float32."""
    config = LlamaConfig(
        vocab_size=len(vocabulary()), hidden_size=64, intermediate_size=96, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=10000.0,
        max_position_embeddings=512, tie_word_embeddings=True, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.to(torch.bfloat16))
    return model.eval()


def write_gguf(path: Path, model: LlamaForCausalLM, **changes: object) -> Path:
    """Write the model; `changes` replace metadata: `pre`, `tokenizer`, `tokens`, `kinds`, `architecture`."""
    config = model.config
    tokens = changes.get("tokens", vocabulary())
    kinds = changes.get("kinds", [3] * len(SPECIAL) + [1] * (len(vocabulary()) - len(SPECIAL)))
    writer = gguf.GGUFWriter(path, str(changes.get("architecture", "llama")))
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model(str(changes.get("tokenizer", "gpt2")))
    writer.add_tokenizer_pre(str(changes.get("pre", "smollm")))
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(MERGES)
    for name, number in (("bos", 1), ("eos", 2), ("unk", 0), ("pad", 2)):
        getattr(writer, f"add_{name}_token_id")(number)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        array = weight.numpy()
        if "q_proj" in name or "k_proj" in name:
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            array = _interleave(array, heads)
        writer.add_tensor(_gguf_name(name), np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _interleave(array: np.ndarray, heads: int) -> np.ndarray:
    """As llama.cpp's converter orders rows: the first and the second half of a head alternate."""
    out = np.empty_like(array)
    size = len(array) // heads
    for head in range(heads):
        rows = array[head * size : (head + 1) * size]
        out[head * size : (head + 1) * size : 2] = rows[: size // 2]
        out[head * size + 1 : (head + 1) * size : 2] = rows[size // 2 :]
    return out


def _gguf_name(name: str) -> str:
    base = name.removesuffix(".weight")
    if base in NAMES:
        return f"{NAMES[base]}.weight"
    _, _, layer, rest = base.split(".", 3)
    return f"blk.{layer}.{NAMES[rest]}.weight"
