"""One token on the CPU with as little overhead as possible: the decode path of the forward pass.

With a small model the arithmetic of a layer takes some hundred microseconds, and what torch's operations cost
beside their arithmetic is of the same order. So the dense part of each layer is one native call.
"""

from __future__ import annotations

import torch

from engine.accounting import Part
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.kvcache import KVCache
from engine.models.config import MixtralConfig
from engine.models.linear import CpuLinear, Linear
from engine.models.rope import RotaryTable
from engine.models.router import route
from engine.models.routing_source import RoutingSource
from engine.models.weights import DenseWeights
from kernels.cpu import PackedLinear
from kernels.token_pass import TokenLayer, TokenPass, TokenShape


class SingleToken:
    """The layers of a model for one token, without embedding and output layer. One call at a time."""

    def __init__(
        self, config: MixtralConfig, weights: DenseWeights, executor: ExpertExecutor, rope: RotaryTable
    ) -> None:
        if not isinstance(weights.output, CpuLinear):
            raise TypeError("the weights are not packed for the CPU")
        self._config = config
        self._executor = executor
        self._rope = rope
        shape = TokenShape(
            hidden=config.hidden_size,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            experts=config.num_experts,
            top_k=config.top_k,
            eps=config.rms_norm_eps,
        )
        layers = [
            TokenLayer(
                layer.input_norm,
                _packed(layer.qkv),
                _packed(layer.attention_out),
                layer.post_norm,
                layer.router,
            )
            for layer in weights.layers
        ]
        self._routers = [layer.router for layer in weights.layers]
        self._pass = TokenPass(weights.output.pool, shape, layers)

    def __call__(
        self, x: torch.Tensor, cache: KVCache, phase: Phase, routing: RoutingSource | None = None
    ) -> torch.Tensor:
        """From the embedding float32 [1, hidden] to the last layer's output, in a buffer that is reused.

        The token's keys and values are written after the cache's `length`, which stays. `routing` chooses the
        experts in the routers' place.
        """
        position, token = cache.length, self._pass
        first = self._config.first_visible(position)
        cos, sin = (rows[0, 0] for rows in self._rope.rows(position, 1))
        token.x.copy_(x)
        account = self._executor.account
        forced = None if routing is None else routing.next_step(1).long()
        for layer in range(self._config.num_layers):
            token.run(layer, cache.layer(layer), position, first, cos, sin)
            ids, weights = token.ids, token.weights
            if forced is not None:
                ids, weights = route(token.normed, self._routers[layer], ids.shape[1], forced[layer])
            account.mark(Part.ATTENTION)
            self._executor.run(layer, token.normed, ids, weights, phase, out=token.x)
            account.mark(Part.CPU_EXPERTS)
        return token.x


def _packed(linear: Linear) -> PackedLinear:
    if not isinstance(linear, CpuLinear):
        raise TypeError("the weights are not packed for the CPU")
    return linear.packed
