"""The fixed places of a decode step's values: graphs keep addresses, so nothing may move between steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from engine.models.config import MixtralConfig
from engine.models.gpu.control import Copy, control_words, write_control
from kernels.gpu.attention import AttentionScratch
from kernels.gpu.experts import ExpertScratch
from kernels.gpu.router import Routed
from kernels.shape import ExpertShape


class StepBuffers:
    """Values of a step for `batch` sequences, on the GPU, and what the host and the GPU tell each other.

    The host's side is pinned. The GPU's kernels read and write activations and results there: 16 KB need no
    copy operation of their own. What many programs of a kernel read is copied first. The names are those of a
    layer's stages, in their order.
    """

    def __init__(
        self,
        config: MixtralConfig,
        shape: ExpertShape,
        batch: int,
        capacity: int,
        device: torch.device,
        number_format: torch.dtype,
    ) -> None:
        hidden, top_k = config.hidden_size, config.top_k
        queries = config.num_heads * config.head_dim
        self.batch = batch

        def on_gpu(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(size, dtype=dtype, device=device)

        def pinned(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(size, dtype=dtype, pin_memory=True)

        self.tokens = on_gpu(batch, dtype=torch.int64)
        self.positions = on_gpu(batch, dtype=torch.int32)  # -1: no sequence in this place
        self.x = on_gpu(batch, hidden)  # the residual stream
        self.normed = on_gpu(batch, hidden, dtype=number_format)  # after the norm before attention
        self.qkv = on_gpu(batch, config.qkv_rows)
        self.mixed = on_gpu(batch, queries, dtype=number_format)
        self.expert_in = on_gpu(batch, hidden, dtype=number_format)  # after the norm before the experts
        self.ids = on_gpu(batch, top_k, dtype=torch.int32)
        self.weights = on_gpu(batch, top_k)
        self.logits = on_gpu(batch, config.vocab_size)
        self.attention = AttentionScratch.make(
            batch, config.num_heads, config.num_kv_heads, config.head_dim, capacity, device
        )
        self.residents = ExpertScratch.make(shape, batch * top_k, device)
        self.streamed = ExpertScratch.make(shape, batch * top_k, device)

        self._inputs = pinned(batch, 2, dtype=torch.int64)
        self._inputs_there = on_gpu(batch, 2, dtype=torch.int64)
        words = control_words(config.num_experts)
        self.control = pinned(words, dtype=torch.int32)
        self.control_there = on_gpu(words, dtype=torch.int32)
        self.copy_places, self.copy_firsts = self.control_there[1:].chunk(2)
        self.nothing = on_gpu(words, dtype=torch.int32)  # for layers of which the host knows nothing
        write_control(self.control.numpy(), results=False)
        self.nothing.copy_(self.control)
        self.host_in = pinned(batch, hidden)
        self.host_ids = pinned(config.num_layers, batch, top_k, dtype=torch.int32)
        self.host_weights = pinned(batch, top_k)
        self.host_out = pinned(batch, hidden)
        self.host_logits = pinned(batch, config.vocab_size)
        self.forced = on_gpu(config.num_layers, batch, top_k, dtype=torch.int32)
        self._control = self.control.numpy()

    def put(self, tokens: Sequence[int], positions: Sequence[int]) -> None:
        """Bring a step's tokens and their positions to the GPU; places beyond them are empty.

        The step before must be over: its inputs are overwritten.
        """
        inputs = self._inputs.numpy()
        inputs[: len(tokens), 0] = tokens
        inputs[: len(tokens), 1] = positions
        inputs[len(tokens) :] = (0, -1)
        self._inputs_there.copy_(self._inputs, non_blocking=True)
        self.tokens.copy_(self._inputs_there[:, 0])
        self.positions.copy_(self._inputs_there[:, 1])
        self.tell(results=False)

    def routed(self, layer: int) -> Routed:
        """Where a layer's router leaves its choice."""
        return Routed(
            self.expert_in, self.ids, self.weights, self.host_in, self.host_ids[layer], self.host_weights
        )

    def tell(self, *, results: bool, copies: Iterable[Copy] = ()) -> None:
        """Tell the next graph whether the host's results count, and which experts were copied in."""
        write_control(self._control, results=results, copies=copies)
