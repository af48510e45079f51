"""What is the same in every decode step, captured once: graphs from one stop of the host to the next.

A layer's dense part is eight kernels, and launched one by one from Python they take 150 µs where they compute
for 30; a graph of them is one launch of 5 µs (H200, 16-core Xeon). The host stops where it must hear what a
router chose: in layers that are not whole on the GPU. Those between two stops are in one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch

from engine.experts.slots import GpuExperts
from engine.models.config import MixtralConfig
from engine.models.gpu.buffers import StepBuffers
from engine.models.gpu.clock import Span
from engine.models.linear import Linear, PlainLinear, QuantisedLinear
from engine.models.rope import RotaryTable
from engine.models.weights import (
    DenseWeights,
    Embedding,
    HostEmbedding,
    QuantisedEmbedding,
    TableEmbedding,
)
from kernels.gpu.attention import attend
from kernels.gpu.experts import run_residents, run_streamed
from kernels.gpu.linear import Weight, embed_rows, linear_small
from kernels.gpu.residual import collect_and_norm, normalise
from kernels.gpu.rope import rope_and_store
from kernels.gpu.router import route


@dataclass(frozen=True)
class Stretch:
    """A captured graph, and the times of the experts that it runs between its dense parts."""

    graph: torch.cuda.CUDAGraph
    experts: tuple[Span, ...]


@dataclass(frozen=True)
class Stop:
    """A layer that is not whole on the GPU.

    `way` leads there from the stop before: the experts that were copied in for that one, all layers between
    them, and this layer up to its router. `residents` runs the chosen experts that live on the GPU, and is
    None where none do.
    """

    layer: int
    way: Stretch
    residents: torch.cuda.CUDAGraph | None


class _Cache(NamedTuple):
    """Where keys and values lie: [layers, 2, kv_heads, cache rows, head_dim], int32 [batch, capacity]."""

    store: torch.Tensor
    rows: torch.Tensor


class StepGraphs:
    """The graphs of a step for one KV cache and one number of sequences.

    `stops` in the order of their layers, then `output`, from the last of them to the logits on the host. The
    caches' tensors are not held, their addresses are: the graphs must not outlive them.
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
        self._spans: list[Span] = []  # of the stretch that is being captured
        self._pool = torch.cuda.graph_pool_handle()
        stream = torch.cuda.Stream(store.device)  # type: ignore[no-untyped-call]
        # What runs before the capture must store nothing: the cache may hold a conversation. So the positions
        # are set before the stream waits, else it could overtake them.
        buffers.positions.fill_(-1)
        stream.wait_stream(torch.cuda.current_stream(store.device))
        with torch.cuda.stream(stream):
            self.stops = self._stops(_Cache(store, rows))
            after = self.stops[-1].layer + 1 if self.stops else 0
            self.output = self._stretch(partial(self._to_output, after, _Cache(store, rows)))
        torch.cuda.current_stream(store.device).wait_stream(stream)

    def _stops(self, cache: _Cache) -> list[Stop]:
        stops, first = [], 0
        for layer, resident in enumerate(self._experts.resident):
            if not resident.all():
                way = self._stretch(partial(self._to_router, first, layer, cache))
                residents = self._capture(partial(self._residents, layer)) if resident.any() else None
                stops.append(Stop(layer, way, residents))
                first = layer + 1
        return stops

    def _stretch(self, work: Callable[[], None]) -> Stretch:
        graph = self._capture(work)
        return Stretch(graph, tuple(self._spans))

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Run the work once, which compiles its kernels, then record it."""
        work()
        torch.cuda.current_stream(self.buffers.x.device).synchronize()
        self._spans.clear()
        graph = torch.cuda.CUDAGraph()
        # thread_local: the arena is registered by another thread meanwhile, which is no part of this.
        graph.capture_begin(self._pool, capture_error_mode="thread_local")
        try:
            work()
        except BaseException as error:
            try:
                graph.capture_end()
            except RuntimeError as second:  # what went wrong made the capture invalid: it must not be hidden
                error.add_note(f"Ending the capture failed, too: {second}")
            raise
        graph.capture_end()
        return graph

    def _to_router(self, first: int, layer: int, cache: _Cache) -> None:
        """Whole layers from `first` on, and then a layer up to its router's choice."""
        self._whole_layers(first, layer, cache)
        self._dense(layer, cache)

    def _to_output(self, first: int, cache: _Cache) -> None:
        """Whole layers from `first` on to the last one, the final norm and the logits."""
        b = self.buffers
        self._whole_layers(first, self._config.num_layers, cache)
        self._collect(self._config.num_layers - 1, self._weights.final_norm)
        linear_small(b.normed, _weight(self._weights.output), b.logits)
        b.host_logits.copy_(b.logits, non_blocking=True)

    def _whole_layers(self, first: int, end: int, cache: _Cache) -> None:
        """What was copied in for the layer before `first`, and the layers up to `end`, which are whole."""
        if first:
            self._copied_in()
        for layer in range(first, end):
            self._dense(layer, cache)
            with self._timed():
                self._residents(layer)

    def _dense(self, index: int, cache: _Cache) -> None:
        """Everything of a layer up to its router's choice."""
        b, config, layer, rows = self.buffers, self._config, self._weights.layers[index], cache.rows
        if index:
            self._collect(index - 1, layer.input_norm)
        else:
            embed_rows(b.tokens, _weight(self._weights.embedding), b.x)
            normalise(b.x, layer.input_norm, config.rms_norm_eps, b.normed)
        linear_small(b.normed, _weight(layer.qkv), b.qkv)
        rope_and_store(b.qkv, *self._angles, b.positions, rows, cache.store[index])
        attend(b.qkv, cache.store[index], rows, b.positions, config.sliding_window, b.attention, b.mixed)
        linear_small(b.mixed, _weight(layer.attention_out), b.x, add=True)
        route(
            b.x,
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

    def _copied_in(self) -> None:
        """Hear what the host did for the stop before, and run what it copied in."""
        b, experts = self.buffers, self._experts
        # Read where it lies it would cost 1 µs for each program of a kernel, one after the other.
        b.control_there.copy_(b.control, non_blocking=True)
        with self._timed():
            run_streamed(
                experts.data,
                experts.shape,
                b.expert_in,
                b.ids,
                b.weights,
                b.copy_places,
                b.copy_firsts,
                b.streamed,
            )

    def _collect(self, index: int, norm: torch.Tensor) -> None:
        """Add a layer's experts to the residual stream, and normalise it for what follows."""
        b = self.buffers
        collect_and_norm(
            b.x,
            b.residents.partial,
            self._experts.table[index],
            b.streamed.partial,
            b.ids,
            b.nothing if self._experts.resident[index].all() else b.control_there,
            b.host_out,
            norm,
            self._config.rms_norm_eps,
            b.normed,
        )

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Keep the time of the experts inside, for the account."""
        span = Span.captured()
        span.begin.record()
        yield
        span.end.record()
        self._spans.append(span)


def _weight(part: Linear | Embedding) -> Weight:
    """The matrix of a dense part, where a GPU's kernels can read it."""
    known = PlainLinear | QuantisedLinear | TableEmbedding | HostEmbedding | QuantisedEmbedding
    if not isinstance(part, known):
        raise TypeError(f"a GPU cannot read a {type(part).__name__}")
    return part.weight
