"""Attention against a direct computation in float64, chunk by chunk and token by token."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kvcache import KVCache
from engine.models.attention import Attention
from engine.models.config import MixtralConfig


def config(heads, kv_heads, head_dim, window):
    return MixtralConfig.from_dict(
        {
            "model_type": "mixtral",
            "vocab_size": 8,
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 2,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "sliding_window": window,
        }
    )


def directly(qkv, heads, kv_heads, window):
    """One query at a time, float64, from the definition."""
    queries, keys, values = qkv.double().split([heads, kv_heads, kv_heads], dim=1)
    out = torch.empty(len(qkv), heads, qkv.shape[2], dtype=torch.float64)
    for position in range(len(qkv)):
        first = 0 if window is None else max(0, position - window + 1)
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = keys[first : position + 1, group] @ queries[position, head] / math.sqrt(qkv.shape[2])
            out[position, head] = torch.softmax(scores, 0) @ values[first : position + 1, group]
    return out.flatten(1)


@given(
    groups=st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3), (6, 2)]),
    head_dim=st.sampled_from([2, 6, 16]),
    window=st.sampled_from([None, 1, 2, 5, 100]),
    chunks=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_chunks_see_exactly_what_they_may(groups, head_dim, window, chunks, seed):
    heads, kv_heads = groups
    shape = config(heads, kv_heads, head_dim, window)
    attention = Attention(shape)
    generator = torch.Generator().manual_seed(seed)
    qkv = torch.randn(sum(chunks), heads + 2 * kv_heads, head_dim, generator=generator)
    cache = KVCache(shape, sum(chunks) + 3, torch.device("cpu"), torch.float32)
    cache.data.fill_(float("nan"))  # what was not written must not be read
    parts = []
    for part in qkv.split(chunks):
        mask = attention.mask(cache.length, len(part), cache.data)
        parts.append(attention(part, cache, 1, mask))
        cache.length += len(part)
    torch.testing.assert_close(
        torch.cat(parts).double(), directly(qkv, heads, kv_heads, window), atol=1e-5, rtol=1e-5
    )
    assert cache.data[0].isnan().all()  # the other layer


@pytest.mark.parametrize(("start", "tokens", "window"), [(0, 5, None), (0, 5, 5), (7, 1, 2)])
def test_no_mask_where_none_is_needed(start, tokens, window):
    assert Attention(config(2, 1, 4, window)).mask(start, tokens, torch.empty(0)) is None
