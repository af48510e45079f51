"""One token of each of several sequences through the layers, with torch: every expert runs once for all."""

from __future__ import annotations

import torch
from torch.nn import functional

from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.kvbatch import SequenceBatch
from engine.models.config import MixtralConfig
from engine.models.rope import RotaryTable
from engine.models.router import route
from engine.models.routing_source import RoutingSource
from engine.models.weights import DenseWeights


class BatchPass:
    """The layers of a model for one step of a SequenceBatch, without embedding and output layer.

    Attention works on the pool as it lies, nothing is gathered: all sequences' queries meet all rows in use,
    and a mask hides the rows of others. Beams share most of their rows, so that little is computed in vain;
    many independent sequences pay with multiplications what they save in copies.
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

        The batch's step has begun; the new keys and values are written into its rows. `routing` chooses the
        experts in the routers' place.
        """
        config, count = self._config, len(x)
        positions = batch.positions[:count].long()
        new_rows = batch.rows[:count].gather(1, positions[:, None])[:, 0].long()
        mask = self._mask(batch, positions)
        cos, sin = self._rope.at(positions, int(batch.lengths.max()))
        forced = None if routing is None else routing.next_step(count).to(x.device, torch.int64)
        for index, layer in enumerate(self._weights.layers):
            qkv = layer.qkv(self._normalise(x, layer.input_norm)).float()
            qkv = qkv.view(count, -1, config.head_dim)
            self._rope.rotate_(qkv[:, : self._rotated], cos, sin)
            x += layer.attention_out(self._attend(qkv, batch.pool.layer(index), new_rows, mask))
            normed = self._normalise(x, layer.post_norm)
            chosen = None if forced is None else forced[index]
            ids, weights = route(normed, layer.router, config.top_k, chosen)
            self._executor.run(index, normed, ids, weights, Phase.DECODE, out=x)

    def _attend(
        self, qkv: torch.Tensor, store: torch.Tensor, new_rows: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Store the new keys and values [2, kv_heads, rows, head_dim], and attend: [sequences, queries]."""
        config, count = self._config, len(qkv)
        heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        new = qkv[:, heads:].reshape(count, 2, kv_heads, head_dim).permute(1, 2, 0, 3)
        store[:, :, new_rows] = new.to(store.dtype)
        queries = qkv[:, :heads].to(store.dtype).view(count, kv_heads, heads // kv_heads, head_dim)
        queries = queries.permute(1, 2, 0, 3).reshape(
            1, kv_heads, -1, head_dim
        )  # a group's heads, all tokens
        keys, values = store[:, None, :, : mask.shape[-1]].unbind(0)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return mixed.view(kv_heads, -1, count, head_dim).permute(2, 0, 1, 3).reshape(count, -1)

    def _mask(self, batch: SequenceBatch, positions: torch.Tensor) -> torch.Tensor:
        """What is added to the scores, [queries of a key head, rows]: zero for rows that a sequence sees."""
        config, count = self._config, len(positions)
        ends = batch.lengths + 1
        firsts = [config.first_visible(int(end) - 1) for end in ends]
        first = torch.tensor(firsts, device=positions.device)
        widest = max(int(end) - first for end, first in zip(ends, firsts, strict=True))
        seen = first[:, None] + torch.arange(widest, device=positions.device)
        seen = torch.minimum(seen, positions[:, None])  # past a sequence's end: its newest token once more
        rows = batch.rows[:count].gather(1, seen).long()
        store = batch.pool.data
        mask = torch.full((count, batch.used_rows), float("-inf"), dtype=store.dtype, device=positions.device)
        mask.scatter_(1, rows, 0.0)
        return mask.repeat(config.num_heads // config.num_kv_heads, 1)

    def _normalise(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm, in float32."""
        return functional.rms_norm(x, (self._config.hidden_size,), weight, self._config.rms_norm_eps)
