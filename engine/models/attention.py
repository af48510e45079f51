"""Grouped-query attention over the KV cache, with causal and sliding-window masks."""

from __future__ import annotations

import torch
from torch.nn import functional

from engine.kvcache import KVCache
from engine.models.config import MixtralConfig


class Attention:
    """Attention of a chunk of new tokens to the cache and to each other. One instance serves all layers."""

    def __init__(self, config: MixtralConfig) -> None:
        self._heads = config.num_heads
        self._kv_heads = config.num_kv_heads
        self._head_dim = config.head_dim
        self._window = config.sliding_window
        self._first_visible = config.first_visible

    def mask(self, start: int, tokens: int, like: torch.Tensor) -> torch.Tensor | None:
        """What is added to the scores of `tokens` new tokens at position `start`; the same for every layer.

        [tokens, keys], keys from the first that the first token sees, with the device and number format of
        `like`, the cache's: zero for a key that the token may see, else minus infinity. None where every key
        is visible (one token), or where plain causality from position 0 says it all.
        """
        first = self._first_visible(start)
        end = start + tokens
        if tokens == 1 or (start == 0 and (self._window is None or end <= self._window)):
            return None
        queries = torch.arange(start, end, device=like.device)[:, None]
        keys = torch.arange(first, end, device=like.device)
        visible = keys <= queries
        if self._window is not None:
            visible &= keys > queries - self._window
        return torch.zeros_like(visible, dtype=like.dtype).masked_fill_(~visible, float("-inf"))

    def __call__(
        self, qkv: torch.Tensor, cache: KVCache, layer: int, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Store the new keys and values, and attend.

        Args:
            qkv: rotated queries, rotated keys and values, [tokens, heads + 2 kv_heads, head_dim].
            cache: holds the earlier tokens; the new ones are written after its `length`, which stays.
            layer: whose part of the cache is used.
            mask: from `mask` for this chunk.

        Returns:
            [tokens, heads * head_dim].
        """
        tokens, start = len(qkv), cache.length
        end, first = start + tokens, self._first_visible(start)
        heads, kv_heads, head_dim = self._heads, self._kv_heads, self._head_dim
        store = cache.layer(layer)
        store[:, :, start:end] = qkv[:, heads:].view(tokens, 2, kv_heads, head_dim).permute(1, 2, 0, 3)
        queries = qkv[:, :heads].to(store.dtype)
        keys, values = store[:, None, :, first:end].unbind(0)  # [1, kv_heads, keys, head_dim]
        if tokens == 1:
            # The query heads of a group become query rows of their key head: nothing is masked or copied.
            query = queries.view(1, kv_heads, heads // kv_heads, head_dim)
            return functional.scaled_dot_product_attention(query, keys, values).reshape(1, -1)
        query = queries.transpose(0, 1)[None]  # [1, heads, tokens, head_dim]
        if mask is not None and mask.is_cuda:
            # There torch takes a mask and fewer key heads together only where it keeps all scores, gigabytes
            # for a long chunk. Repeated, a layer's keys and values take 67 MB for 4096 of Mixtral's tokens.
            keys, values = (part.repeat_interleave(heads // kv_heads, 1) for part in (keys, values))
            kv_heads = heads
        mixed = functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask, is_causal=mask is None, enable_gqa=kv_heads != heads
        )
        return mixed[0].transpose(0, 1).reshape(tokens, heads * head_dim)
