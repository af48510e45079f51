"""The shape of a Mixtral model, read and checked from its config.json. Torch-free."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import CheckpointError

MODEL_TYPE = "mixtral"


@dataclass(frozen=True)
class MixtralConfig:
    """Everything about a Mixtral model that is not a weight.

    Names follow the field, not config.json: `num_experts` is its num_local_experts, `top_k` its
    num_experts_per_tok. `sliding_window` counts the visible positions including the token's own; None is
    full attention.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    num_experts: int
    top_k: int
    rms_norm_eps: float
    rope_theta: float
    sliding_window: int | None
    max_position_embeddings: int
    tie_word_embeddings: bool

    @classmethod
    def from_dict(cls, raw: Mapping[str, object]) -> MixtralConfig:
        """The configuration in a parsed config.json, in the form of transformers 4 or 5.

        Raises:
            CheckpointError: another kind of model, a missing or impossible value, or a feature (a quantised
                format, a RoPE scaling, an activation) that this program does not compute.
        """
        if raw.get("model_type") != MODEL_TYPE:
            raise CheckpointError(
                "This is not a Mixtral model.",
                why=f"Its config.json says model_type {raw.get('model_type')!r}, expected {MODEL_TYPE!r}.",
                action="Choose a model of the Mixtral family, such as Mixtral-8x7B-Instruct.",
            )
        if raw.get("quantization_config") is not None:
            raise _unsupported("its weights are quantised (quantization_config)", "its original bf16 version")
        if raw.get("hidden_act", "silu") != "silu":
            raise _unsupported(f"its activation is {raw['hidden_act']!r}", "one that uses 'silu'")
        hidden = _size(raw, "hidden_size")
        heads = _size(raw, "num_attention_heads")
        kv_heads = (
            heads if raw.get("num_key_value_heads", 8) is None else _size(raw, "num_key_value_heads", 8)
        )
        experts = _size(raw, "num_local_experts", 8)
        top_k = _size(raw, "num_experts_per_tok", 2)
        if raw.get("head_dim") is None and hidden % heads:
            raise _invalid("hidden_size", hidden, f"a multiple of num_attention_heads ({heads})")
        head_dim = hidden // heads if raw.get("head_dim") is None else _size(raw, "head_dim")
        if head_dim % 2:
            raise _invalid("head_dim", head_dim, "even, for rotary embeddings")
        if heads % kv_heads:
            raise _invalid("num_key_value_heads", kv_heads, f"a divisor of num_attention_heads ({heads})")
        if top_k > experts:
            raise _invalid("num_experts_per_tok", top_k, f"at most num_local_experts ({experts})")
        window = raw.get("sliding_window")
        return cls(
            vocab_size=_size(raw, "vocab_size"),
            hidden_size=hidden,
            intermediate_size=_size(raw, "intermediate_size"),
            num_layers=_size(raw, "num_hidden_layers"),
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=head_dim,
            num_experts=experts,
            top_k=top_k,
            rms_norm_eps=_positive(raw, "rms_norm_eps", 1e-5),
            rope_theta=_rope_theta(raw),
            sliding_window=None if window is None else _size(raw, "sliding_window"),
            max_position_embeddings=_size(raw, "max_position_embeddings", 131072),
            tie_word_embeddings=_flag(raw, "tie_word_embeddings", False),
        )

    @property
    def qkv_rows(self) -> int:
        """Rows of the fused query, key and value projection."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    def first_visible(self, position: int) -> int:
        """The earliest position that a token at `position` attends to."""
        return 0 if self.sliding_window is None else max(0, position - self.sliding_window + 1)

    @property
    def expert_parameters(self) -> int:
        """Weights of one expert: w1, w2 and w3."""
        return 3 * self.hidden_size * self.intermediate_size

    @property
    def other_parameters(self) -> int:
        """Weights outside the experts: embeddings, attention, routers, norms and the output layer."""
        hidden = self.hidden_size
        attention = (self.qkv_rows + self.num_heads * self.head_dim) * hidden
        layer = attention + self.num_experts * hidden + 2 * hidden
        embeddings = self.vocab_size * hidden * (1 if self.tie_word_embeddings else 2)
        return self.num_layers * layer + embeddings + hidden

    def kv_bytes_per_token(self, dtype_bytes: int) -> int:
        """Bytes that one token takes in the KV cache when numbers take `dtype_bytes` each."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * dtype_bytes


def _rope_theta(raw: Mapping[str, object]) -> float:
    """The RoPE base, from `rope_parameters` (transformers 5) or `rope_theta`; scaled RoPE is refused."""
    for key in ("rope_parameters", "rope_scaling"):
        table = raw.get(key)
        if table is None:
            continue
        if not isinstance(table, Mapping):
            raise _invalid(key, table, "a table or null")
        kind = table.get("rope_type", table.get("type", "default"))
        if kind != "default":
            raise _unsupported(f"its positions use the RoPE scaling {kind!r}", "one without RoPE scaling")
        if "rope_theta" in table:
            return _positive(table, "rope_theta", 1e6)
    return _positive(raw, "rope_theta", 1e6)


def _size(raw: Mapping[str, object], key: str, default: int | None = None) -> int:
    value = raw.get(key, default)
    if type(value) is not int or not 0 < value < 2**31:
        raise _invalid(key, value, "a whole number above zero")
    return value


def _positive(raw: Mapping[str, object], key: str, default: float) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise _invalid(key, value, "a number above zero")
    return float(value)


def _flag(raw: Mapping[str, object], key: str, default: bool) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        raise _invalid(key, value, "true or false")
    return value


def _invalid(key: str, value: object, expected: str) -> CheckpointError:
    return CheckpointError(
        "The model's config.json cannot be used.",
        why=f"{key} is {value!r}, expected {expected}." if value is not None else f"{key} is missing.",
        action="Download config.json again from where the model came.",
    )


def _unsupported(why: str, instead: str) -> CheckpointError:
    return CheckpointError(
        "This model needs something that this program does not compute yet.",
        why=f"According to config.json {why}.",
        action=f"Choose {instead}.",
    )
