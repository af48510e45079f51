"""The experts of a decode step that are not on the GPU: the policy's plan for them, and its execution."""

from __future__ import annotations

import time

import numpy as np
import torch

from engine.accounting import Part
from engine.events import Phase, Place
from engine.executor import ExpertExecutor
from engine.models.gpu.buffers import StepBuffers
from engine.models.gpu.control import Copy
from engine.policy import LayerPlan, decide
from kernels.cpu import ExpertJob
from kernels.gpu.experts import run_residents


class MissingExperts:
    """Runs one layer's missing experts for the sequences of a step: CPU and copies at the same time."""

    def __init__(self, executor: ExpertExecutor, buffers: StepBuffers) -> None:
        assert executor.gpu is not None
        assert executor.stream is not None
        self._executor = executor
        self._gpu = executor.gpu
        self._stream = executor.stream
        self._buffers = buffers
        top_k = buffers.host_weights.shape[1]
        pairs = buffers.batch * top_k
        self._ids = buffers.host_ids.numpy()
        self._out = buffers.host_out.numpy()
        # Every pair's row and weight as tensors: an expert with one token needs nothing new.
        flat = buffers.host_weights.view(-1)
        self._flat = flat
        self._row = [torch.full((1,), pair // top_k, dtype=torch.int32) for pair in range(pairs)]
        self._weight = [flat[pair : pair + 1] for pair in range(pairs)]
        self._top_k = top_k
        self._in_slots: list[int] = []  # places of what the next graph runs
        # For each expert a table in which it alone has a place, the first one. Each begins at a multiple of
        # 16 bytes: Triton compiles kernels anew for those that do not.
        experts = buffers.copy_places.shape[0]
        only = torch.eye(experts, -(-experts // 4) * 4, dtype=torch.int32, device=buffers.copy_places.device)
        self._only = (only - 1)[:, :experts].unbind()
        self._observed: tuple[LayerPlan, float, float] | None = None
        self.copied: torch.cuda.Event | None = None  # when the last layer's copies ended; None if it had none
        if min(pairs, experts) > self._gpu.slots:
            self._run_now(0, 0)  # nobody has chosen it yet: this compiles the kernels, if nothing has before

    def run(self, layer: int, sequences: int, phase: Phase) -> None:
        """Run what the first `sequences` places chose; the router's choice must be on the host.

        What the next graph has to run and to add is told in the buffers; after its launch, call `launched`.
        """
        executor, buffers = self._executor, self._buffers
        account = executor.account
        self.copied = None
        chosen: list[int] = self._ids[layer, :sequences].ravel().tolist()
        resident = self._gpu.resident[layer]
        if all(resident[expert] for expert in chosen):
            buffers.tell(results=False)
            executor.counters.add_each(phase, layer, set(chosen), Place.GPU)
            return
        tokens = np.bincount(chosen, minlength=len(resident))
        plan = decide(executor.policy, resident, tokens, executor.costs, executor.panels)
        executor.counters.add(phase, layer, plan.places)
        jobs = self._jobs(layer, chosen, plan)
        account.mark(Part.PYTHON)
        ticket, begun = None, time.perf_counter()
        if jobs:
            self._out[:sequences] = 0
            ticket = executor.pool.submit_experts(
                buffers.host_in[:sequences], jobs, executor.bank.shape, buffers.host_out[:sequences]
            )
        try:
            copies, copying = self._stream_share(layer, plan)
        except BaseException:  # the next step uses the same buffers
            if ticket is not None:
                ticket.cancel()
                ticket.wait()
            raise
        account.mark(Part.LAUNCH)
        if ticket is not None:
            ticket.wait()
            account.mark(Part.CPU_EXPERTS)
        cpu_seconds = time.perf_counter() - begun if ticket is not None else 0.0
        self._observed = plan, cpu_seconds, copying - begun
        buffers.tell(results=ticket is not None, copies=copies)

    def launched(self) -> None:
        """The next graph is on its way: what it runs may be overwritten after it."""
        for place in self._in_slots:
            self._stream.release(place)
        self._in_slots.clear()

    def observe(self) -> None:
        """Tell how long the last layer's plan took; once its copies are known to have ended."""
        if self._observed is not None:
            self._executor.observe(*self._observed)
            self._observed = None

    def _jobs(self, layer: int, chosen: list[int], plan: LayerPlan) -> list[ExpertJob]:
        """The CPU's share."""
        executor = self._executor
        jobs = []
        for expert in np.flatnonzero(plan.cpu_panels).tolist():
            pairs = [pair for pair, each in enumerate(chosen) if each == expert]
            if len(pairs) == 1:
                rows, weights = self._row[pairs[0]], self._weight[pairs[0]]
            else:
                rows = torch.tensor([pair // self._top_k for pair in pairs], dtype=torch.int32)
                weights = self._flat[pairs]
            share = (0, int(plan.cpu_panels[expert]))
            jobs.append(ExpertJob(executor.bank.block(layer, expert), rows, weights, share))
        return jobs

    def _stream_share(self, layer: int, plan: LayerPlan) -> tuple[list[Copy], float]:
        """Enqueue the copies, and that the compute stream waits for them.

        Returns what the next graph is to be told, and when the first copy was on its way. The graph runs as
        many of them as there are slots; earlier ones are run here, one by one, to make room.
        """
        stream, gpu = self._stream, self._gpu
        copies, begun = [], 0.0
        self._in_slots.clear()  # of a step that failed
        for number, expert in enumerate(plan.copies):
            first = int(plan.cpu_panels[expert])
            place = stream.fetch(layer, expert, (first, self._executor.panels) if first else None)
            begun = begun or time.perf_counter()
            stream.wait(place)
            self.copied = stream.last_copy
            # Only the last one can be there in part (see `engine.policy`).
            if not first and len(plan.copies) - number > gpu.slots:
                self._run_now(expert, place)
                stream.release(place)
                copies.append(Copy(expert, None))
            else:
                self._in_slots.append(place)
                copies.append(Copy(expert, place, first))
        return copies, begun or time.perf_counter()

    def _run_now(self, expert: int, place: int) -> None:
        """Enqueue an expert, which is at a place, for whoever chose it."""
        b, gpu = self._buffers, self._gpu
        run_residents(
            gpu.data[place:], gpu.shape, b.expert_in, b.ids, b.weights, self._only[expert], b.streamed
        )
