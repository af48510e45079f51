"""Drives a loaded model as a conversation does, and takes the time of prompts and of single tokens."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.bench.errors import BenchError
from engine.bench.model_subject import LoadedSubject
from engine.drift import Drift
from engine.events import Phase, Place
from engine.progress import CancelToken
from engine.session import Logits, Session


@dataclass(frozen=True)
class Work:
    """What a prompt or some tokens took. `seconds`: of each step; executions of experts by where they lay.

    `missing_experts`: the different experts that ran and are not residents.
    """

    seconds: tuple[float, ...]
    resident_executions: int
    missing_executions: int
    missing_experts: int

    @property
    def total(self) -> float:
        """Seconds of all steps together."""
        return sum(self.seconds)

    @property
    def median(self) -> float:
        """Seconds of a step."""
        return statistics.median(self.seconds)


class Driver:
    """One conversation at a time with random tokens; the same routing for each policy.

    `session` holds the conversation, `logits` [vocabulary] are those of what was read last.
    """

    def __init__(self, subject: LoadedSubject, cancel: CancelToken) -> None:
        self._parts = subject.parts
        self._resident = subject.resident
        self._costs = subject.costs
        self._cancel = cancel
        plan = subject.plan
        self.session = Session(self._parts.model, plan.context_length, plan.prefill_chunk)
        self.logits: Logits = np.zeros(0, dtype=np.float32)
        self._random = np.random.default_rng(0)

    def use(self, policy: str) -> None:
        """Let a policy decide from now on, by costs as they were measured; what slots hold is forgotten."""
        executor = self._parts.executor
        executor.policy = policy
        executor.costs = None if self._costs is None else Drift(self._costs)
        if executor.gpu is not None:
            executor.gpu.empty_slots()

    def read(self, tokens: int) -> Work:
        """A new conversation of `tokens` tokens, up to the first token's logits. Raises Cancelled."""
        prompt = self._ids(tokens)
        if self._parts.model.routing is not None:
            self._parts.model.routing.restart()
        self.count_anew()
        begin = time.perf_counter()
        self.session.begin(prompt)
        for logits in self.session.read(prompt, self._cancel.raise_if_cancelled):
            if logits is not None:
                self.logits = logits
        seconds = time.perf_counter() - begin
        return self.work([seconds], Phase.PREFILL)

    def decode(self, tokens: int) -> Work:
        """`tokens` single tokens after what was read. Raises Cancelled between two."""
        self.count_anew()
        seconds = []
        for token in self._ids(tokens):
            self._cancel.raise_if_cancelled()
            begin = time.perf_counter()
            self.logits = self.session.step(token)
            seconds.append(time.perf_counter() - begin)
        return self.work(seconds, Phase.DECODE)

    def count_anew(self) -> None:
        """Count executions from here on; what the host did before belongs to no step."""
        self._parts.counters.reset()
        self._parts.executor.account.pause()

    def work(self, seconds: Sequence[float], phase: Phase) -> Work:
        """The times with what was counted meanwhile. Raises BenchError if the model's output is no number."""
        if not np.isfinite(self.logits).all():
            raise BenchError("The model's output is not finite: its figures would mean nothing.")
        counts = self._parts.counters.snapshot().counts[phase]
        runs = counts.sum(axis=2)
        on_gpu = int(counts[..., Place.GPU].sum())
        # What was left in a slot counts as having been on the GPU: by the table it is missing all the same.
        missing = int(np.count_nonzero(runs[~self._resident]))
        return Work(tuple(seconds), on_gpu, int(runs.sum()) - on_gpu, missing)

    def _ids(self, count: int) -> list[int]:
        ids: list[int] = self._random.integers(0, self._parts.info.config.vocab_size, count).tolist()
        return ids
