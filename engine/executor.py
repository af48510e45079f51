"""Carries out a layer's experts: the CPU pool, the GPU's residents and the copy stream, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.costs import ExpertCosts
from engine.events import Phase, Place
from engine.experts.bank import ExpertBank
from engine.experts.link import CudaLink, DirectLink, Groups, HostLink
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream, ExpertStream
from engine.policy import IDLE, LayerPlan, decide
from engine.stats import HitCounters
from kernels.cpu import CpuPool, ExpertJob
from kernels.token_pass import run_chosen


class ExpertExecutor:
    """Runs the chosen experts of one layer and step, each where the policy says, and adds their results.

    Without `gpu`, the model has one place, the CPU, and every policy means the same.
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
        self.costs = costs
        config = bank.config
        self._experts = config.num_experts
        self._cpu_plan = np.full(config.num_experts, Place.CPU, dtype=np.int8)
        self._link: HostLink = DirectLink(config.hidden_size)
        self.stream: ExpertStream | None = None
        if gpu is not None and gpu.device.type == "cuda":
            self._link = CudaLink(config.hidden_size, config.top_k, gpu.device)
            self.stream = CudaStream(bank, gpu, counters)
        elif gpu is not None:
            self.stream = DirectStream(bank, gpu, counters)

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
            return
        if self.gpu is None:
            groups = Groups.of(ids.numpy(), self._experts)
            active = groups.counts > 0
            self.counters.add(phase, layer, np.where(active, self._cpu_plan, np.int8(IDLE)))
            panels = active * self.bank.shape.panels
            self.pool.run_experts(x, self._jobs(layer, groups, panels, weights), self.bank.shape, out)
            return
        link = self._link
        link.send_activations(x)
        host_ids, host_weights = link.routing(ids, weights)
        groups = Groups.of(host_ids.numpy(), self._experts)
        present = self.gpu.present[layer]
        plan = decide(self.policy, present, groups.counts, self.costs, self.bank.shape.panels)
        self.counters.add(phase, layer, plan.places)
        jobs = self._jobs(layer, groups, plan.cpu_panels, host_weights)
        ticket = None
        if jobs:  # the CPU starts first: submitting takes microseconds, enqueuing the GPU's work longer
            host_x, host_out = link.activations(len(x))
            ticket = self.pool.submit_experts(host_x, jobs, self.bank.shape, host_out)
        if plan.copies or (plan.places == Place.GPU).any():
            self._run_on_gpu(layer, groups, plan, x, weights, out)
        if ticket is not None:
            ticket.wait()
            link.add_results(out)

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

    def _jobs(
        self,
        layer: int,
        groups: Groups,
        panels: npt.NDArray[np.signedinteger[Any]],
        weights: torch.Tensor,
    ) -> list[ExpertJob]:
        """The CPU's share: of each expert that many first panels. `weights` are on the host."""
        tokens = torch.from_numpy(groups.tokens)
        flat = weights.reshape(-1)[torch.from_numpy(groups.pairs)]
        bounds = groups.bounds
        return [
            ExpertJob(
                self.bank.block(layer, expert),
                tokens[bounds[expert] : bounds[expert + 1]],
                flat[bounds[expert] : bounds[expert + 1]],
                (0, int(panels[expert])),
            )
            for expert in np.flatnonzero(panels).tolist()
        ]

    def _run_on_gpu(
        self,
        layer: int,
        groups: Groups,
        plan: LayerPlan,
        x: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """The GPU's share of a plan."""
        assert self.gpu is not None
        assert self.stream is not None
        gpu, stream = self.gpu, self.stream
        rows = x.to(gpu.number_format)
        pairs = self._link.upload(groups.pairs)
        flat = weights.reshape(-1)
        top_k = weights.shape[1]

        def add(expert: int, place: int, panels: tuple[int, int] | None = None) -> None:
            mine = pairs[groups.bounds[expert] : groups.bounds[expert + 1]]
            tokens = mine // top_k
            stream.wait(place)
            result = gpu.run(place, rows[tokens], panels) * flat[mine][:, None]
            stream.release(place)
            out.index_add_(0, tokens, result.to(out.dtype))

        # All of it is enqueued, not waited for. What is on the GPU comes first, so that it computes during
        # the first copy, and so that no copy takes a slot that this step still needs.
        for expert in np.flatnonzero(plan.places == Place.GPU).tolist():
            place = gpu.place(layer, expert)
            assert place is not None
            add(expert, place)
        for expert in plan.copies:
            on_cpu = int(plan.cpu_panels[expert])
            panels = (on_cpu, self.bank.shape.panels) if on_cpu else None
            add(expert, stream.fetch(layer, expert, panels), panels)
