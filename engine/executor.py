"""Carries out a layer's experts: the CPU pool, the GPU's residents and the copy stream, side by side."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.accounting import TimeAccount
from engine.costs import ExpertCosts
from engine.drift import Drift
from engine.events import Phase, Place
from engine.experts.bank import ExpertBank
from engine.experts.link import CudaLink, DirectLink, Groups, HostLink
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream, ExpertStream
from engine.policy import IDLE, LayerPlan, decide
from engine.stats import HitCounters
from kernels.cpu import CpuPool, ExpertJob
from kernels.token_pass import run_chosen

# From this many tokens on nearly every expert of the next layer will be asked for, so that its first copy can
# begin before its router has chosen: the copy stream then works through attention, too.
_PREFETCH_TOKENS = 16


@dataclass(frozen=True)
class _LayerWork:
    """The pairs of token and expert of a layer, sorted by expert: `groups` on the host, `pairs` the same on
    the model's device.
    """

    layer: int
    groups: Groups
    pairs: torch.Tensor
    top_k: int

    def pairs_of(self, expert: int) -> torch.Tensor:
        """Positions in the flattened routing, int64, on the model's device."""
        return self.pairs[self.groups.bounds[expert] : self.groups.bounds[expert + 1]]

    def tokens(self, expert: int) -> torch.Tensor:
        """The tokens of an expert, int64, all different, on the model's device."""
        return self.pairs_of(expert) // self.top_k


class ExpertExecutor:
    """Runs the chosen experts of one layer and step, each where the policy says, and adds their results.

    Without `gpu`, the model has one place, the CPU, and every policy means the same. `account` adds up where
    the time of decode steps goes; `panels` are the pieces that an expert can be divided into.
    """

    def __init__(
        self,
        bank: ExpertBank,
        pool: CpuPool,
        counters: HitCounters,
        *,
        gpu: GpuExperts | None = None,
        policy: str = "makespan",
        costs: ExpertCosts | None = None,
    ) -> None:
        self.bank = bank
        self.pool = pool
        self.counters = counters
        self.gpu = gpu
        self.policy = policy
        self.account = TimeAccount()
        self.panels = bank.shape.panels
        self.costs = costs
        config = bank.config
        self._layers = config.num_layers
        self._experts = config.num_experts
        self._cpu_plan = np.full(config.num_experts, Place.CPU, dtype=np.int8)
        self._copied_for_prompt = False
        self._ahead: tuple[int, int] | None = None  # layer and expert whose copy was begun before its turn
        self._ahead_until = 0.0  # when it should have ended
        self._link: HostLink = DirectLink(config.hidden_size)
        self.stream: ExpertStream | None = None
        if gpu is not None and gpu.device.type == "cuda":
            self._link = CudaLink(config.hidden_size, config.top_k, gpu.device)
            self.stream = CudaStream(bank, gpu, counters)
        elif gpu is not None:
            self.stream = DirectStream(bank, gpu, counters)

    def begin_decode(self) -> None:
        """A decode step begins: what was copied for prompts since the last one is not to be observed."""
        if self._copied_for_prompt and self.stream is not None:
            self.stream.take_copy_seconds()
            self._copied_for_prompt = False

    def observe(self, plan: LayerPlan, cpu_seconds: float, copy_lag: float = 0.0) -> None:
        """Compare a plan whose copies have ended with the time that it took.

        Seconds from the layer's start: to the end of the CPU's share, and until copies were on their way.
        """
        copies = 0.0 if self.stream is None else self.stream.take_copy_seconds()
        copies += copy_lag if copies else 0.0
        if isinstance(self.costs, Drift):
            self.costs.observe(plan, cpu_seconds, copies)

    def run(
        self,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """Add the weighted experts' outputs to `out`.

        Args:
            layer: whose experts.
            x: their inputs, float32 [tokens, hidden], on the model's device.
            ids: int64 [tokens, top_k], the chosen experts of each token.
            weights: float32 [tokens, top_k].
            phase: under which the executions are counted.
            out: float32 [tokens, hidden], the residual stream.
        """
        if self.gpu is None and len(x) == 1:
            self._run_one(layer, x, ids, weights, phase, out)
        elif self.gpu is None:
            groups = Groups.of(ids.numpy(), self._experts)
            active = groups.counts > 0
            self.counters.add(phase, layer, np.where(active, self._cpu_plan, np.int8(IDLE)))
            self.pool.run_experts(x, self._all_jobs(layer, groups, weights), self.bank.shape, out)
        else:
            self._run_shared(self.gpu, layer, x, ids, weights, phase, out)

    def _run_one(
        self,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """`run` for one token without a GPU: the same with less bookkeeping."""
        self.counters.add_each(phase, layer, ids[0].tolist(), Place.CPU)
        run_chosen(self.pool, self.bank.layer(layer), self.bank.shape, x, ids, weights, out)

    def _all_jobs(self, layer: int, groups: Groups, weights: torch.Tensor) -> list[ExpertJob]:
        """All experts that have tokens, on the CPU."""
        tokens = torch.from_numpy(groups.tokens)
        flat = weights.reshape(-1)[torch.from_numpy(groups.pairs)]
        bounds = groups.bounds
        return [
            ExpertJob(
                self.bank.block(layer, expert),
                tokens[bounds[expert] : bounds[expert + 1]],
                flat[bounds[expert] : bounds[expert + 1]],
            )
            for expert in np.flatnonzero(groups.counts).tolist()
        ]

    def _run_shared(
        self,
        gpu: GpuExperts,
        layer: int,
        x: torch.Tensor,
        ids: torch.Tensor,
        weights: torch.Tensor,
        phase: Phase,
        out: torch.Tensor,
    ) -> None:
        """`run` with a GPU. The host waits for the router's choice and for the CPU's activations."""
        link, stream = self._link, self.stream
        assert stream is not None
        if layer == 0:
            self._ahead, self._ahead_until = None, 0.0  # of a step that did not get so far
        if len(x) == 1:
            self.begin_decode()
        pairs = link.sorted_pairs(ids)
        host_ids, host_weights = link.routing(ids, weights)
        work = _LayerWork(layer, Groups.of(host_ids.numpy(), self._experts), pairs, ids.shape[1])
        begun = time.perf_counter()
        ahead = max(0.0, self._ahead_until - begun)
        plan = decide(
            self.policy, gpu.present[layer], work.groups.counts, self.costs, self.panels, ahead=ahead
        )
        self.counters.add(phase, layer, self._counted(layer, plan.places))
        jobs, tokens = self._jobs(work, plan, host_weights)
        ticket = None
        if tokens is not None:  # the CPU starts first: submitting takes microseconds, the GPU's work longer
            host_x, host_out = link.send(x[tokens])
            ticket = self.pool.submit_experts(host_x, jobs, self.bank.shape, host_out)
        try:
            self._run_on_gpu(gpu, stream, work, plan, x, weights, out)
            if len(x) >= _PREFETCH_TOKENS and self._ahead is None:
                self._prefetch(gpu, stream, layer + 1, len(x) * ids.shape[1], begun + plan.predicted.copy)
        except BaseException:  # most likely out of memory: the next attempt uses the same buffers
            if ticket is not None:
                ticket.cancel()
                ticket.wait()
            raise
        cpu_seconds = 0.0
        if ticket is not None:
            ticket.wait()
            cpu_seconds = time.perf_counter() - begun
            row = 0
            for expert in np.flatnonzero(plan.cpu_panels).tolist():
                mine = work.tokens(expert)
                link.add_results(out, mine, row)
                row += len(mine)
        if len(x) == 1:
            self.observe(plan, cpu_seconds)
        else:  # copies of a chunk go on beyond their layer: its times are not those of its plan
            self._copied_for_prompt = True

    def _counted(self, layer: int, places: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Places as they are counted: the expert whose copy was begun ahead is there, but was streamed."""
        ahead = self._ahead
        if ahead is None or ahead[0] > layer:
            return places
        self._ahead, self._ahead_until = None, 0.0
        if ahead[0] != layer or places[ahead[1]] != Place.GPU:
            return places
        counted = places.copy()
        counted[ahead[1]] = Place.STREAMED
        return counted

    def _jobs(
        self, work: _LayerWork, plan: LayerPlan, weights: torch.Tensor
    ) -> tuple[list[ExpertJob], torch.Tensor | None]:
        """The CPU's share: each expert has rows of its own, one after the other; and which tokens they are.

        `weights` are on the host, the tokens, int64 [rows], on the model's device; None without any.
        """
        flat = weights.reshape(-1)[torch.from_numpy(work.groups.pairs)]
        jobs, tokens, row = [], [], 0
        for expert in np.flatnonzero(plan.cpu_panels).tolist():
            first, end = work.groups.bounds[expert], work.groups.bounds[expert + 1]
            rows = torch.arange(row, row + end - first, dtype=torch.int32)
            share = (0, int(plan.cpu_panels[expert]))
            jobs.append(ExpertJob(self.bank.block(work.layer, expert), rows, flat[first:end], share))
            tokens.append(work.tokens(expert))
            row += end - first
        return jobs, torch.cat(tokens) if tokens else None

    def _run_on_gpu(
        self,
        gpu: GpuExperts,
        stream: ExpertStream,
        work: _LayerWork,
        plan: LayerPlan,
        x: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """The GPU's share of a plan. All of it is enqueued only."""
        rows = x.to(gpu.number_format)
        flat = weights.reshape(-1)
        layer = work.layer

        def add(expert: int, place: int, panels: tuple[int, int] | None) -> None:
            tokens = work.tokens(expert)
            stream.wait(place)
            result = gpu.run(place, rows[tokens], panels) * flat[work.pairs_of(expert)][:, None]
            stream.release(place)
            out.index_add_(0, tokens, result.to(out.dtype))

        # Residents come first, so that they compute while copies that were begun for this layer arrive; then
        # these, so that no copy takes a slot that this step still needs.
        here = np.flatnonzero(plan.places == Place.GPU).tolist()
        for expert in sorted(here, key=lambda each: not gpu.resident[layer, each]):
            place = gpu.place(layer, expert)
            assert place is not None
            add(expert, place, None)
        for expert in plan.copies:
            first = int(plan.cpu_panels[expert])
            panels = (first, self.panels) if first else None
            add(expert, stream.fetch(layer, expert, panels), panels)

    def _prefetch(
        self, gpu: GpuExperts, stream: ExpertStream, first: int, pairs: int, busy_until: float
    ) -> None:
        """Begin with a copy for a layer whose router has not chosen yet, if the policy is going to copy.

        For the next one from `first` on that is not whole on the GPU. Until about `busy_until` the copies of
        the layer before are under way.
        """
        layer = next((each for each in range(first, self._layers) if not gpu.resident[each].all()), None)
        seconds = math.inf if self.costs is None else self.costs.transfer_lat()  # not every profile has it
        if layer is None or not math.isfinite(seconds):
            return
        expected = np.full(self._experts, max(1, pairs // self._experts), dtype=np.int64)
        plan = decide(self.policy, gpu.present[layer], expected, self.costs, self.panels)
        if plan.copies and not plan.cpu_panels[plan.copies[0]]:
            stream.fetch(layer, plan.copies[0])
            self._ahead = layer, plan.copies[0]
            self._ahead_until = busy_until + seconds
