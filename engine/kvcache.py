"""The keys and values of the tokens a model has read, so that each is computed once."""

from __future__ import annotations

import torch

from engine.errors import GenerationError
from engine.models.config import MixtralConfig


class KVCache:
    """Keys and values of up to `capacity` tokens of one conversation, oldest first.

    `data` is [layers, 2 (keys, values), kv_heads, capacity, head_dim]: a head's positions are contiguous,
    so that attention reads slices of it without a copy. On the CPU, pages take memory only once a token is
    stored in them, and they are small on purpose: with huge pages the first token touches nearly all of them
    (0.6 s for the starter model on a virtual machine), for about 5 % of decode speed.
    """

    def __init__(
        self,
        config: MixtralConfig,
        capacity: int,
        device: torch.device,
        dtype: torch.dtype,
        data: torch.Tensor | None = None,
    ) -> None:
        shape = (config.num_layers, 2, config.num_kv_heads, capacity, config.head_dim)
        if data is not None and data.shape != shape:
            raise ValueError(f"a cache of {list(shape)} cannot lie in {list(data.shape)}")
        self.data = torch.empty(shape, device=device, dtype=dtype) if data is None else data
        self.capacity = capacity
        self.length = 0
        self._config = config
        self._layers = list(self.data.unbind(0))

    def part(self, first: int, count: int) -> KVCache:
        """An empty cache in the memory of `count` positions of this one, from `first` on."""
        if not 0 <= first <= first + count <= self.capacity:
            raise ValueError(f"positions {first} to {first + count} are not in a cache of {self.capacity}")
        data = self.data[:, :, :, first : first + count]
        return KVCache(self._config, count, data.device, data.dtype, data)

    @property
    def nbytes(self) -> int:
        """Bytes reserved, whatever the length."""
        return self.data.numel() * self.data.element_size()

    def layer(self, index: int) -> torch.Tensor:
        """A view of one layer, [2, kv_heads, capacity, head_dim]."""
        return self._layers[index]

    def check_room(self, tokens: int) -> None:
        """Check that `tokens` more fit.

        Raises:
            GenerationError: they do not.
        """
        if self.length + tokens > self.capacity:
            raise GenerationError(
                "The conversation does not fit into the model's context.",
                why=f"It holds {self.capacity} tokens, and {self.length + tokens} are needed.",
                action="Start a new chat, or load the model with a longer context.",
            )

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot cut a cache of {self.length} tokens to {length}")
        self.length = length
