"""Decode steps on CUDA: a graph, its last router's choice to the host, missing experts, the next graph."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch

from engine.accounting import Part
from engine.events import Phase, Place
from engine.executor import ExpertExecutor
from engine.kvcache import KVCache
from engine.models.config import MixtralConfig
from engine.models.gpu.buffers import StepBuffers
from engine.models.gpu.clock import DeviceClock
from engine.models.gpu.graphs import StepGraphs, Stretch
from engine.models.gpu.missing import MissingExperts
from engine.models.rope import RotaryTable
from engine.models.routing_source import RoutingSource
from engine.models.weights import DenseWeights
from kernels.gpu.attention import fits
from kernels.gpu.experts import MAX_PAIRS
from kernels.gpu.linear import MOST_TOKENS

# The device's times of a step are asked for every so often: reading the events, four for each layer that is
# not whole, costs 0.6 ms a step where none is.
_TIMED_EVERY = 8


def most_sequences(top_k: int) -> int:
    """How many sequences a step can have, a power of two, as its batches are; 0 if not even one.

    The dense kernels take MOST_TOKENS of them, the experts' kernels MAX_PAIRS pairs of token and expert.
    """
    fitting = MAX_PAIRS // top_k
    return min(MOST_TOKENS, 1 << fitting.bit_length() >> 1)


def _attends(config: MixtralConfig, weights: DenseWeights) -> bool:
    """Whether the attention of a step can be compiled for the model's heads."""
    return fits(config.num_heads, config.num_kv_heads, config.head_dim, weights.number_format.itemsize)


class _Prepared:
    """Graphs and their missing experts for one cache and batch."""

    def __init__(self, graphs: StepGraphs, missing: MissingExperts) -> None:
        self.graphs = graphs
        self.missing = missing


class GpuDecoder:
    """Runs decode steps of up to `most_sequences` sequences: of none where the kernels do not fit the model.

    One call at a time.
    """

    def __init__(
        self,
        config: MixtralConfig,
        weights: DenseWeights,
        executor: ExpertExecutor,
        rope: RotaryTable,
        device: torch.device,
    ) -> None:
        assert executor.gpu is not None
        self.most_sequences = most_sequences(config.top_k) if _attends(config, weights) else 0
        self._config = config
        self._weights = weights
        self._executor = executor
        self._rope = rope
        self._device = device
        self._prepared: WeakKeyDictionary[object, dict[tuple[int, bool], _Prepared]] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[KVCache, torch.Tensor] = WeakKeyDictionary()
        self._routed = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._clock = DeviceClock(executor.account, device)
        self._steps = 0
        self._whole_layers = np.flatnonzero(executor.gpu.resident.all(axis=1))

    def step_of(
        self, cache: KVCache, token: int, phase: Phase, routing: RoutingSource | None = None
    ) -> torch.Tensor:
        """`step` for one token after those in a cache, whose length stays."""
        return self.step([token], [cache.length], cache, cache.data, self._own_rows(cache), phase, routing)

    def prepare(self, cache: KVCache) -> None:
        """Capture the graphs for single tokens after those in a cache."""
        self._prepare(1, cache, cache.data, self._own_rows(cache), forced=False)

    def is_prepared(self, cache: KVCache) -> bool:
        """Whether there are graphs for a cache already."""
        return bool(self._prepared.get(cache))

    def _own_rows(self, cache: KVCache) -> torch.Tensor:
        """The rows of a cache that one sequence has to itself."""
        rows = self._rows.get(cache)
        if rows is None:
            rows = torch.arange(cache.capacity, dtype=torch.int32, device=self._device)[None]
            self._rows[cache] = rows
        return rows

    def step(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        owner: object,
        store: torch.Tensor,
        rows: torch.Tensor,
        phase: Phase,
        routing: RoutingSource | None = None,
    ) -> torch.Tensor:
        """Read one token of each sequence and return the logits of the next, float32 [sequences, vocabulary].

        Args:
            tokens: the sequences' tokens.
            positions: at which position of its sequence each token stands.
            owner: what `store` and `rows` live and die with.
            store: keys and values, [layers, 2, kv_heads, cache rows, head_dim].
            rows: int32 [at least as many rows as sequences, capacity], the cache row of every position.
            phase: under which the executions are counted.
            routing: takes the routers' place; None for the routers' own choice.
        """
        prepared = self._prepare(len(tokens), owner, store, rows, forced=routing is not None)
        graphs, missing, buffers = prepared.graphs, prepared.missing, prepared.graphs.buffers
        account = self._executor.account
        sequences = len(tokens)
        timed = self._steps % _TIMED_EVERY == 0
        self._steps += 1
        account.begin_step()
        self._executor.begin_decode()
        buffers.put(tokens, positions)
        if routing is not None:
            buffers.forced[:, :sequences].copy_(routing.next_step(sequences))
        clock = self._clock if timed else None
        if clock is not None:
            clock.begin()
        for stop in graphs.stops:
            self._launch(stop.way, missing, clock)
            if stop.residents is not None:
                stop.residents.replay()
            account.mark(Part.LAUNCH)
            self._routed.synchronize()
            if clock is not None:
                clock.mark(missing.copied, Part.ROUTER_SYNC)
            missing.observe()
            missing.run(stop.layer, sequences, phase)
        self._launch(graphs.output, missing, clock)
        account.mark(Part.LAUNCH)
        self._routed.synchronize()
        if clock is not None:
            clock.mark(missing.copied, Part.WAITING)
        missing.observe()
        self._count_whole_layers(buffers, sequences, phase)
        logits = buffers.host_logits[:sequences].clone()
        account.end_step(counted=timed and phase is Phase.DECODE)
        return logits

    def _launch(self, stretch: Stretch, missing: MissingExperts, clock: DeviceClock | None) -> None:
        """Launch a graph, after which `_routed` happens."""
        if clock is not None:
            clock.graph_begins()
        stretch.graph.replay()
        self._routed.record(torch.cuda.current_stream(self._device))
        if clock is not None:
            clock.graph_ends(stretch.experts)
        missing.launched()

    def _prepare(
        self, sequences: int, owner: object, store: torch.Tensor, rows: torch.Tensor, *, forced: bool
    ) -> _Prepared:
        """The graphs for a cache, captured at its first step."""
        batch = 1 << (sequences - 1).bit_length()
        if batch > self.most_sequences:
            raise ValueError(f"a step has at most {self.most_sequences} sequences, not {sequences}")
        known = self._prepared.setdefault(owner, {})
        prepared = known.get((batch, forced))
        if prepared is None:
            gpu = self._executor.gpu
            assert gpu is not None
            buffers = StepBuffers(
                self._config, gpu.shape, batch, rows.shape[1], self._device, self._weights.number_format
            )
            graphs = StepGraphs(
                self._config, self._weights, gpu, self._rope, store, rows, buffers, forced=forced
            )
            prepared = known[batch, forced] = _Prepared(graphs, MissingExperts(self._executor, buffers))
        return prepared

    def _count_whole_layers(self, buffers: StepBuffers, sequences: int, phase: Phase) -> None:
        """Count the experts of layers whose choice the host did not wait for."""
        layers = self._whole_layers
        chosen = buffers.host_ids.numpy()[layers, :sequences].reshape(
            len(layers), sequences * self._config.top_k
        )
        self._executor.counters.add_chosen(phase, layers, chosen, Place.GPU)
