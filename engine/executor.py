"""Carries out a layer's experts: the CPU pool, the GPU's residents and the copy stream, side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from engine.events import Phase, Place
from engine.experts.bank import ExpertBank
from engine.experts.link import CudaLink, DirectLink, Groups, HostLink
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream, ExpertStream
from engine.policy import IDLE, ExpertCosts, decide
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
        policy: str = "paper",
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
            plan = np.where(groups.counts > 0, self._cpu_plan, np.int8(IDLE))
            self.counters.add(phase, layer, plan)
            self.pool.run_experts(x, self._jobs(layer, groups, plan, weights), self.bank.shape, out)
            return
        link = self._link
        link.send_activations(x)
        host_ids, host_weights = link.routing(ids, weights)
        groups = Groups.of(host_ids.numpy(), self._experts)
        plan = decide(self.policy, self.gpu.present[layer], groups.counts, self.costs)
        self.counters.add(phase, layer, plan)
        jobs = self._jobs(layer, groups, plan, host_weights)
        ticket = None
        if jobs:  # the CPU starts first: submitting takes microseconds, enqueuing the GPU's work longer
            host_x, host_out = link.activations(len(x))
            ticket = self.pool.submit_experts(host_x, jobs, self.bank.shape, host_out)
        if len(jobs) < np.count_nonzero(plan != IDLE):
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
        plan: npt.NDArray[np.int8],
        weights: torch.Tensor,
    ) -> list[ExpertJob]:
        """The CPU's share of a plan. `weights` are on the host."""
        tokens = torch.from_numpy(groups.tokens)
        flat = weights.reshape(-1)[torch.from_numpy(groups.pairs)]
        bounds = groups.bounds
        return [
            ExpertJob(
                self.bank.block(layer, expert),
                tokens[bounds[expert] : bounds[expert + 1]],
                flat[bounds[expert] : bounds[expert + 1]],
            )
            for expert in np.flatnonzero(plan == Place.CPU).tolist()
        ]

    def _run_on_gpu(
        self,
        layer: int,
        groups: Groups,
        plan: npt.NDArray[np.int8],
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

        def add(expert: int, place: int) -> None:
            mine = pairs[groups.bounds[expert] : groups.bounds[expert + 1]]
            tokens = mine // top_k
            stream.wait(place)
            result = gpu.run(place, rows[tokens]) * flat[mine][:, None]
            stream.release(place)
            out.index_add_(0, tokens, result.to(out.dtype))

        # All of it is enqueued, not waited for. What is on the GPU comes first, so that it computes during
        # the first copy, and so that no copy takes a slot that this step still needs.
        for expert in np.flatnonzero(plan == Place.GPU).tolist():
            place = gpu.place(layer, expert)
            assert place is not None
            add(expert, place)
        for expert in np.flatnonzero(plan == Place.STREAMED).tolist():
            add(expert, stream.fetch(layer, expert))
