"""One token of each of several sequences through the layers, with torch: every expert runs once for all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from engine.accounting import Part
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.kvbatch import SequenceBatch
from engine.models.config import MixtralConfig
from engine.models.rope import RotaryTable
from engine.models.router import route
from engine.models.routing_source import RoutingSource
from engine.models.weights import DenseWeights

# A masked score costs so much less than gathering its key and value: 7 to 8 times less with 3 key heads of 64
# on one Zen 4 core, 6 to 7 with 8 of 128 (2 to 16 sequences of 128 to 2048 tokens).
_MASKED_PER_GATHERED = 6


@dataclass(frozen=True)
class _Seen:
    """What each sequence of a step sees: its rows, int64, and with `mask` what is added to all scores.

    The mask is [queries of a key head, rows in use]: zero for rows that a sequence sees, else minus infinity.
    """

    rows: list[torch.Tensor]
    mask: torch.Tensor | None


class BatchPass:
    """The layers of a model for one step of a SequenceBatch, without embedding and output layer.

    Beams share most of their rows. So attention works on the pool as it lies: all sequences' queries meet all
    rows in use, and a mask hides those of others. Where that would be mostly in vain, with many independent
    sequences, each one's keys and values are gathered instead.
    """

    def __init__(
        self, config: MixtralConfig, weights: DenseWeights, executor: ExpertExecutor, rope: RotaryTable
    ) -> None:
        self._config = config
        self._weights = weights
        self._executor = executor
        self._rope = rope
        self._rotated = config.num_heads + config.num_kv_heads

    def __call__(self, x: torch.Tensor, batch: SequenceBatch, routing: RoutingSource | None = None) -> None:
        """All layers: x, float32 [sequences, hidden], becomes the last layer's output.

        The batch's step has begun, and the account's; the new keys and values are written into its rows.
        `routing` chooses the experts in the routers' place.
        """
        config, count, account = self._config, len(x), self._executor.account
        positions = batch.positions[:count].long()
        new_rows = batch.rows[:count].gather(1, positions[:, None])[:, 0].long()
        seen = self._seen(batch)
        cos, sin = self._rope.at(positions, int(batch.lengths.max()))
        forced = None if routing is None else routing.next_step(count).to(x.device, torch.int64)
        for index, layer in enumerate(self._weights.layers):
            qkv = layer.qkv(self._normalise(x, layer.input_norm)).float()
            qkv = qkv.view(count, -1, config.head_dim)
            self._rope.rotate_(qkv[:, : self._rotated], cos, sin)
            x += layer.attention_out(self._attend(qkv, batch.pool.layer(index), new_rows, seen))
            normed = self._normalise(x, layer.post_norm)
            chosen = None if forced is None else forced[index]
            ids, weights = route(normed, layer.router, config.top_k, chosen)
            account.mark(Part.ATTENTION)
            self._executor.run(index, normed, ids, weights, Phase.DECODE, out=x)
            account.mark(Part.CPU_EXPERTS)

    def _attend(
        self, qkv: torch.Tensor, store: torch.Tensor, new_rows: torch.Tensor, seen: _Seen
    ) -> torch.Tensor:
        """Store the new keys and values [2, kv_heads, rows, head_dim], and attend: [sequences, queries]."""
        config, count = self._config, len(qkv)
        heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        new = qkv[:, heads:].reshape(count, 2, kv_heads, head_dim).permute(1, 2, 0, 3)
        store[:, :, new_rows] = new.to(store.dtype)
        queries = qkv[:, :heads].to(store.dtype).view(count, kv_heads, heads // kv_heads, head_dim)
        if seen.mask is None:
            mixed = [
                functional.scaled_dot_product_attention(query[None], *store.index_select(2, rows)[:, None])
                for query, rows in zip(queries, seen.rows, strict=True)
            ]
            return torch.cat(mixed).view(count, -1)
        queries = queries.permute(1, 2, 0, 3).reshape(
            1, kv_heads, -1, head_dim
        )  # a group's heads, all tokens
        keys, values = store[:, None, :, : seen.mask.shape[-1]].unbind(0)
        mixed_all = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen.mask)
        return mixed_all.view(kv_heads, -1, count, head_dim).permute(2, 0, 1, 3).reshape(count, -1)

    def _seen(self, batch: SequenceBatch) -> _Seen:
        """What the sequences of a step see, the same in every layer."""
        config = self._config
        ends = (batch.lengths + 1).tolist()
        rows = [
            batch.rows[index, config.first_visible(end - 1) : end].long() for index, end in enumerate(ends)
        ]
        used = batch.used_rows
        if len(rows) * used > _MASKED_PER_GATHERED * sum(len(each) for each in rows):
            return _Seen(rows, None)
        store = batch.pool.data
        mask = torch.full((len(rows), used), float("-inf"), dtype=store.dtype, device=store.device)
        for own, each in zip(mask, rows, strict=True):
            own[each] = 0.0
        return _Seen(rows, mask.repeat(config.num_heads // config.num_kv_heads, 1))

    def _normalise(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm, in float32."""
        return functional.rms_norm(x, (self._config.hidden_size,), weight, self._config.rms_norm_eps)
