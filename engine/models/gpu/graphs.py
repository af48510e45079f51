"""What is the same in every decode step, captured once: per layer its dense part, and its resident experts.

A layer's dense part is eight kernels, and launched one by one from Python they take 150 µs where they compute
for 30; a graph of them is one launch of 5 µs (H200, 16-core Xeon).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.experts.slots import GpuExperts
from engine.models.config import MixtralConfig
from engine.models.gpu.buffers import StepBuffers
from engine.models.linear import Linear, PlainLinear, QuantisedLinear
from engine.models.rope import RotaryTable
from engine.models.weights import DenseWeights, Embedding, QuantisedEmbedding, TableEmbedding
from kernels.gpu.attention import attend, rope_and_store
from kernels.gpu.experts import run_residents
from kernels.gpu.linear import Weight, embed_rows, linear_small
from kernels.gpu.residual import collect_and_norm, normalise
from kernels.gpu.router import route


class StepGraphs:
    """The graphs of a step for one KV cache and one number of sequences.

    `dense[layer]` adds what the layer before left, and goes on to the layer's router; `residents[layer]` runs
    the chosen experts that live on the GPU, and is None where none do; `output` ends with the logits on the
    host. The caches' tensors are not held, their addresses are: the graphs must not outlive them.
    """

    def __init__(
        self,
        config: MixtralConfig,
        weights: DenseWeights,
        experts: GpuExperts,
        rope: RotaryTable,
        store: torch.Tensor,
        rows: torch.Tensor,
        buffers: StepBuffers,
        *,
        forced: bool,
    ) -> None:
        """`store`: [layers, 2, kv_heads, cache rows, head_dim]; `rows`: int32 [batch, capacity] on the GPU.

        `forced`: experts are those of `buffers.forced`, not the router's choice.
        """
        self.buffers = buffers
        self._config = config
        self._weights = weights
        self._experts = experts
        cos, sin = rope.rows(0, rows.shape[1])
        self._angles = cos.flatten(1), sin.flatten(1)  # held: the graphs know their addresses
        self._forced = forced
        self._pool = torch.cuda.graph_pool_handle()
        stream = torch.cuda.Stream(store.device)  # type: ignore[no-untyped-call]
        # What runs before the capture must store nothing: the cache may hold a conversation. So the positions
        # are set before the stream waits, else it could overtake them.
        buffers.positions.fill_(-1)
        stream.wait_stream(torch.cuda.current_stream(store.device))
        with torch.cuda.stream(stream):
            self.dense = [
                self._capture(lambda layer=layer: self._dense(layer, store[layer], rows))  # type: ignore[misc]
                for layer in range(config.num_layers)
            ]
            self.residents = [
                self._capture(lambda layer=layer: self._residents(layer))  # type: ignore[misc]
                if experts.resident[layer].any()
                else None
                for layer in range(config.num_layers)
            ]
            self.output = self._capture(self._output)
        torch.cuda.current_stream(store.device).wait_stream(stream)

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Run the work once, which compiles its kernels, then record it."""
        work()
        torch.cuda.current_stream(self.buffers.x.device).synchronize()
        graph = torch.cuda.CUDAGraph()
        # thread_local: the arena is registered by another thread meanwhile, which is no part of this.
        graph.capture_begin(self._pool, capture_error_mode="thread_local")
        try:
            work()
        finally:
            graph.capture_end()
        return graph

    def _dense(self, index: int, cache: torch.Tensor, rows: torch.Tensor) -> None:
        """Everything of a layer up to its router's choice."""
        b, config, layer = self.buffers, self._config, self._weights.layers[index]
        if index:
            self._collect(index - 1, layer.input_norm)
        else:
            embed_rows(b.tokens, _weight(self._weights.embedding), b.x)
            normalise(b.x, layer.input_norm, config.rms_norm_eps, b.normed)
        linear_small(b.normed, _weight(layer.qkv), b.qkv)
        rope_and_store(b.qkv, *self._angles, b.positions, rows, cache)
        attend(b.qkv, cache, rows, b.positions, config.sliding_window, b.attention, b.mixed)
        linear_small(b.mixed, _weight(layer.attention_out), b.x, add=True)
        route(
            b.x,
            None,
            layer.post_norm,
            layer.router,
            config.rms_norm_eps,
            b.routed(index),
            forced=b.forced[index] if self._forced else None,
            positions=b.positions,
        )

    def _residents(self, index: int) -> None:
        b, experts = self.buffers, self._experts
        run_residents(
            experts.data, experts.shape, b.expert_in, b.ids, b.weights, experts.table[index], b.residents
        )

    def _output(self) -> None:
        """The last layer's experts, the final norm and the logits."""
        b = self.buffers
        self._collect(self._config.num_layers - 1, self._weights.final_norm)
        linear_small(b.normed, _weight(self._weights.output), b.logits)
        b.host_logits.copy_(b.logits, non_blocking=True)

    def _collect(self, index: int, norm: torch.Tensor) -> None:
        """Add a layer's experts to the residual stream, and normalise it for what follows."""
        b = self.buffers
        whole = bool(self._experts.resident[index].all())
        if not whole:
            # Read where it lies it would cost 1 µs for each program of the kernel, one after the other.
            b.control_there.copy_(b.control, non_blocking=True)
        collect_and_norm(
            b.x,
            b.residents.partial,
            self._experts.table[index],
            b.streamed.partial,
            b.ids,
            b.nothing if whole else b.control_there,
            b.host_out,
            norm,
            self._config.rms_norm_eps,
            b.normed,
        )


def _weight(part: Linear | Embedding) -> Weight:
    """The matrix of a dense part that lies on the GPU."""
    if not isinstance(part, PlainLinear | QuantisedLinear | TableEmbedding | QuantisedEmbedding):
        raise TypeError(f"{type(part).__name__} does not lie on a GPU")
    return part.weight
