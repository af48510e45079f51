"""The dense Llama that the starter model is made from: its weights out of the GGUF file, layer by layer.

Weights are restored to float32 and rounded to bf16, which is how the converted checkpoint stores them; the
forward pass here computes in float32 with the rounded weights, so it sees what the converted model will see.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from engine.checkpoint.gguf import GgufFile
from engine.errors import CheckpointError


@dataclass(frozen=True)
class DenseConfig:
    """The shape of a Llama model, from GGUF metadata."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rope_theta: float
    norm_eps: float

    @staticmethod
    def of(file: GgufFile) -> DenseConfig:
        """Read the shape; `CheckpointError` if the file holds another architecture or lacks an entry."""
        architecture = file.get("general.architecture", str)
        if architecture != "llama":
            raise CheckpointError(
                f"{file.path.name} cannot be converted.",
                why=f"It holds a model of the architecture {architecture}; the starter model is a llama.",
                action="Use the file that the starter model's recipe names.",
            )
        return DenseConfig(
            layers=file.get("llama.block_count", int),
            hidden=file.get("llama.embedding_length", int),
            intermediate=file.get("llama.feed_forward_length", int),
            heads=file.get("llama.attention.head_count", int),
            kv_heads=file.get("llama.attention.head_count_kv", int),
            head_dim=file.get("llama.rope.dimension_count", int),
            vocabulary=file.get("llama.vocab_size", int),
            context=file.get("llama.context_length", int),
            rope_theta=file.get("llama.rope.freq_base", float),
            # Stored as float32: 1e-5 would come back as 9.999999747e-06.
            norm_eps=float(f"{file.get('llama.attention.layer_norm_rms_epsilon', float):.6g}"),
        )


@dataclass(frozen=True)
class DenseLayer:
    """One layer's weights in bf16, rows are outputs."""

    input_norm: Tensor  # [hidden]
    q: Tensor  # [heads · head_dim, hidden]
    k: Tensor  # [kv_heads · head_dim, hidden]
    v: Tensor  # [kv_heads · head_dim, hidden]
    o: Tensor  # [hidden, heads · head_dim]
    post_norm: Tensor  # [hidden]
    gate: Tensor  # [intermediate, hidden]
    up: Tensor  # [intermediate, hidden]
    down: Tensor  # [hidden, intermediate]


def read_bf16(file: GgufFile, name: str) -> Tensor:
    """The tensor `name`, rounded to bf16."""
    return torch.from_numpy(file.read(name)).to(torch.bfloat16)


def read_layer(file: GgufFile, config: DenseConfig, index: int) -> DenseLayer:
    """The weights of layer `index`, q and k in the order of rows that Hugging Face checkpoints have."""

    def part(name: str) -> Tensor:
        return read_bf16(file, f"blk.{index}.{name}.weight")

    return DenseLayer(
        input_norm=part("attn_norm"),
        q=unpermute(part("attn_q"), config.heads),
        k=unpermute(part("attn_k"), config.kv_heads),
        v=part("attn_v"),
        o=part("attn_output"),
        post_norm=part("ffn_norm"),
        gate=part("ffn_gate"),
        up=part("ffn_up"),
        down=part("ffn_down"),
    )


def unpermute(weight: Tensor, heads: int) -> Tensor:
    """Undo GGUF's order of q and k rows, which interleaves the two halves of a head that RoPE pairs."""
    rows, columns = weight.shape
    pairs = weight.view(heads, rows // heads // 2, 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


def attend(layer: DenseLayer, config: DenseConfig, x: Tensor) -> Tensor:
    """x + attention(norm(x)) for one whole sequence, float32 [tokens, hidden]."""
    tokens = len(x)
    h = rms_norm(x, layer.input_norm, config.norm_eps)
    q = _rotate(_heads(h @ layer.q.float().T, config.head_dim), config.rope_theta)
    k = _rotate(_heads(h @ layer.k.float().T, config.head_dim), config.rope_theta)
    v = _heads(h @ layer.v.float().T, config.head_dim)
    mixed = functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=True, enable_gqa=True
    )[0]
    return x + mixed.transpose(0, 1).reshape(tokens, -1) @ layer.o.float().T


def feed_forward(layer: DenseLayer, h: Tensor) -> Tensor:
    """The gated FFN of normalised hidden states, float32 [tokens, hidden]."""
    inner = functional.silu(h @ layer.gate.float().T) * (h @ layer.up.float().T)
    return inner @ layer.down.float().T


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last dimension in float32."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.float()


def _heads(x: Tensor, head_dim: int) -> Tensor:
    """[tokens, heads · head_dim] to [heads, tokens, head_dim]."""
    return x.view(len(x), -1, head_dim).transpose(0, 1)


def _rotate(x: Tensor, theta: float) -> Tensor:
    """RoPE (arXiv 2104.09864) at positions 0, 1, …: the two halves of a head are the rotated pairs."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequencies
    cos, sin = angles.cos().float(), angles.sin().float()
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
