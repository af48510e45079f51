"""The dense model that the starter model must equal, built without any of our own code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralForCausalLM

from engine.progress import CancelToken, ignore_progress
from engine.starter.recipe import load_recipe
from engine.starter.source import gguf_file

HELD_OUT = Path(__file__).with_name("heldout.txt")


@pytest.fixture(scope="session")
def gguf_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The GGUF file that the starter model is made from."""
    scratch = tmp_path_factory.mktemp("gguf") / "source"
    with gguf_file(load_recipe(), scratch, ignore_progress, CancelToken()) as path:
        yield path


@pytest.fixture(scope="session")
def dense_weights(gguf_path: Path) -> dict[str, torch.Tensor]:
    """The GGUF file's tensors under Hugging Face's names, rounded to bf16 and widened to float32.

    Read and restored by the `gguf` library; q and k rows are brought back by index, not by our reshape.
    """
    names = {
        "token_embd": "model.embed_tokens", "output_norm": "model.norm",
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    weights = {}
    for tensor in gguf.GGUFReader(gguf_path).tensors:
        array = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        prefix, _, name = tensor.name.removesuffix(".weight").rpartition(".")
        if name in ("attn_q", "attn_k"):
            array = torch.stack([array[_gguf_row(row)] for row in range(len(array))])
        layer = prefix.replace("blk", "model.layers") + "." if prefix else ""
        weights[f"{layer}{names[name]}.weight"] = array.to(torch.bfloat16).float()
    return weights


def _gguf_row(row: int, head_dim: int = 64) -> int:
    """Where row `row` of a q or k matrix lies in the GGUF file: there the halves of a head alternate."""
    head, within = divmod(row, head_dim)
    half, place = divmod(within, head_dim // 2)
    return head * head_dim + 2 * place + half


@pytest.fixture(scope="session")
def dense_model(dense_weights: dict[str, torch.Tensor]) -> LlamaForCausalLM:
    """transformers' Llama with these weights, in float32."""
    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, rms_norm_eps=1e-5, rope_theta=100000.0,
        max_position_embeddings=8192, tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    missing, unexpected = model.load_state_dict(dense_weights, strict=False, assign=True)
    assert missing == ["lm_head.weight"]
    assert not unexpected
    model.tie_weights()
    return model.eval()


@pytest.fixture(scope="session")
def mixtral(starter_dir: Path) -> MixtralForCausalLM:
    """transformers' Mixtral, loaded from the starter model's folder in float32."""
    model = MixtralForCausalLM.from_pretrained(
        starter_dir, dtype=torch.float32, experts_implementation="eager"
    )
    return model.eval()
