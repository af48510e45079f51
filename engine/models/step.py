"""One token on the CPU with as little overhead as possible: the decode path of the forward pass.

With a small model the arithmetic of a layer takes some hundred microseconds, and torch's own cost per
operation is of the same order. So one token runs in buffers that are made once, and its small vectors are
handled by numpy, whose calls cost a fraction; matrices, attention and experts are the kernels' and torch's as
everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.kvcache import KVCache
from engine.models.attention import Attention
from engine.models.config import MixtralConfig
from engine.models.linear import CpuLinear, Linear
from engine.models.rope import RotaryTable
from engine.models.router import route
from engine.models.weights import DenseWeights

Vector = npt.NDArray[np.float32]


class SingleToken:
    """The layers of a model for one token, without embedding and output layer. One call at a time."""

    def __init__(
        self, config: MixtralConfig, weights: DenseWeights, executor: ExpertExecutor, rope: RotaryTable
    ) -> None:
        self._config = config
        self._executor = executor
        self._rope = rope
        self._attention = Attention(config)
        heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        self._x = torch.empty(1, config.hidden_size)
        self._normed = torch.empty(1, config.hidden_size)
        self._normed_array = self._normed.numpy()[0]
        self._projected = torch.empty(1, config.hidden_size)
        self._qkv = torch.empty(1, config.qkv_rows)
        queries = heads * head_dim
        self._query = self._qkv[:, :queries].view(1, kv_heads, heads // kv_heads, head_dim)
        # The same memory as numpy arrays.
        qkv = self._qkv.numpy().reshape(-1, head_dim)
        self._rotated = qkv[: heads + kv_heads]
        self._swapped = np.empty_like(self._rotated)
        self._new = qkv[heads:].reshape(2, kv_heads, head_dim)
        self._layers = [
            _Layer(
                layer.input_norm.numpy(),
                _on_cpu(layer.qkv),
                _on_cpu(layer.attention_out),
                layer.post_norm.numpy(),
                layer.router,
            )
            for layer in weights.layers
        ]

    def __call__(self, x: torch.Tensor, cache: KVCache, phase: Phase) -> torch.Tensor:
        """From the embedding float32 [1, hidden] to the last layer's output, in a buffer that is reused.

        The token's keys and values are written after the cache's `length`, which stays.
        """
        top_k = self._config.top_k
        cos, sin = (row.numpy()[0, 0] for row in self._rope.rows(cache.length, 1))
        residual, projected = self._x.numpy()[0], self._projected.numpy()[0]
        residual[:] = x.numpy()[0]
        for index, layer in enumerate(self._layers):
            self._normalise(residual, layer.input_norm)
            layer.qkv.into(self._normed, self._qkv)
            self._rotate(cos, sin)
            cache.store_one(index, self._new)
            mixed = self._attention.one(self._query, cache, index)
            layer.attention_out.into(mixed, self._projected)
            residual += projected
            self._normalise(residual, layer.post_norm)
            ids, weights = route(self._normed, layer.router, top_k)
            self._executor.run(index, self._normed, ids, weights, phase, out=self._x)
        return self._x

    def _normalise(self, x: Vector, weight: Vector) -> None:
        """RMSNorm of x into the buffer for it."""
        normed = self._normed_array
        scale = 1 / math.sqrt(float(x.dot(x)) / len(x) + self._config.rms_norm_eps)
        np.multiply(x, np.float32(scale), out=normed)
        np.multiply(normed, weight, out=normed)

    def _rotate(self, cos: Vector, sin: Vector) -> None:
        """Rotate queries and keys in place, as `RotaryTable.rotate_` does."""
        heads, swapped, half = self._rotated, self._swapped, self._config.head_dim // 2
        swapped[:, :half] = heads[:, half:]
        swapped[:, half:] = heads[:, :half]
        np.multiply(heads, cos, out=heads)
        np.multiply(swapped, sin, out=swapped)
        np.add(heads, swapped, out=heads)


@dataclass(frozen=True)
class _Layer:
    """A layer's weights as this path takes them."""

    input_norm: Vector
    qkv: CpuLinear
    attention_out: CpuLinear
    post_norm: Vector
    router: torch.Tensor


def _on_cpu(linear: Linear) -> CpuLinear:
    if not isinstance(linear, CpuLinear):
        raise TypeError("the weights are not packed for the CPU")
    return linear
