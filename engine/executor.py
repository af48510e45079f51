"""Carries out a layer's experts: the CPU pool, the GPU's residents and the copy stream, side by side."""

from __future__ import annotations

import time
from typing import Any

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
        self._link: HostLink = DirectLink(config.hidden_size)
        self.stream: ExpertStream | None = None
        if gpu is not None and gpu.device.type == "cuda":
            self._link = CudaLink(config.hidden_size, config.top_k, gpu.device)
            self.stream = CudaStream(bank, gpu, counters)
        elif gpu is not None:
            self.stream = DirectStream(bank, gpu, counters)

    def observe(self, plan: LayerPlan, cpu_seconds: float) -> None:
        """Compare a plan whose copies have ended with the time that it took."""
        copies = 0.0 if self.stream is None else self.stream.take_copy_seconds()
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
            jobs = self._jobs(layer, groups, active * self.panels, weights)
            self.pool.run_experts(x, jobs, self.bank.shape, out)
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
        """`run` with a GPU. The only wait beside the CPU's own work is for the router's choice."""
        link, stream = self._link, self.stream
        assert stream is not None
        link.send_activations(x)
        pairs = link.sorted_pairs(ids)
        host_ids, host_weights = link.routing(ids, weights)
        groups = Groups.of(host_ids.numpy(), self._experts)
        plan = decide(self.policy, gpu.present[layer], groups.counts, self.costs, self.panels)
        self.counters.add(phase, layer, plan.places)
        jobs = self._jobs(layer, groups, plan.cpu_panels, host_weights)
        ticket, begun = None, time.perf_counter()
        if jobs:  # the CPU starts first: submitting takes microseconds, enqueuing the GPU's work longer
            host_x, host_out = link.activations(len(x))
            ticket = self.pool.submit_experts(host_x, jobs, self.bank.shape, host_out)
        try:
            self._run_on_gpu(gpu, stream, layer, groups, pairs, plan, x, weights, out)
            if len(x) >= _PREFETCH_TOKENS and layer + 1 < self._layers:
                self._prefetch(gpu, stream, layer + 1, len(x) * ids.shape[1])
        except BaseException:  # most likely out of memory: the next attempt uses the same buffers
            if ticket is not None:
                ticket.cancel()
                ticket.wait()
            raise
        cpu_seconds = 0.0
        if ticket is not None:
            ticket.wait()
            cpu_seconds = time.perf_counter() - begun
            link.add_results(out)
        if len(x) == 1:  # copies of longer chunks go on beyond their layer
            self.observe(plan, cpu_seconds)

    def _jobs(
        self, layer: int, groups: Groups, panels: npt.NDArray[np.signedinteger[Any]], weights: torch.Tensor
    ) -> list[ExpertJob]:
        """The CPU's share: of each expert that many first panels. `weights` are on the host."""
        tokens = torch.from_numpy(groups.tokens)
        flat = weights.reshape(-1)[torch.from_numpy(groups.pairs)]
        bounds = groups.bounds
        jobs = []
        for expert in np.flatnonzero(panels).tolist():
            mine = slice(bounds[expert], bounds[expert + 1])
            share = (0, int(panels[expert]))
            jobs.append(ExpertJob(self.bank.block(layer, expert), tokens[mine], flat[mine], share))
        return jobs

    def _run_on_gpu(
        self,
        gpu: GpuExperts,
        stream: ExpertStream,
        layer: int,
        groups: Groups,
        pairs: torch.Tensor,
        plan: LayerPlan,
        x: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """The GPU's share of a plan: `pairs` are the groups' on the device. All of it is enqueued only."""
        rows = x.to(gpu.number_format)
        flat = weights.reshape(-1)
        top_k = weights.shape[1]

        def add(expert: int, place: int, panels: tuple[int, int] | None) -> None:
            mine = pairs[groups.bounds[expert] : groups.bounds[expert + 1]]
            tokens = mine // top_k
            stream.wait(place)
            result = gpu.run(place, rows[tokens], panels) * flat[mine][:, None]
            stream.release(place)
            out.index_add_(0, tokens, result.to(out.dtype))

        # What is on the GPU comes first, so that it computes during the first copy, and so that no copy takes
        # a slot that this step still needs.
        for expert in np.flatnonzero(plan.places == Place.GPU).tolist():
            place = gpu.place(layer, expert)
            assert place is not None
            add(expert, place, None)
        for expert in plan.copies:
            first = int(plan.cpu_panels[expert])
            panels = (first, self.panels) if first else None
            add(expert, stream.fetch(layer, expert, panels), panels)

    def _prefetch(self, gpu: GpuExperts, stream: ExpertStream, layer: int, pairs: int) -> None:
        """Begin with a copy for a layer whose router has not chosen yet, if the policy is going to copy."""
        expected = np.full(self._experts, max(1, pairs // self._experts), dtype=np.int64)
        plan = decide(self.policy, gpu.present[layer], expected, self.costs, self.panels)
        if plan.copies and not plan.cpu_panels[plan.copies[0]]:
            stream.fetch(layer, plan.copies[0])
