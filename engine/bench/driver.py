"""Drives a loaded model as a conversation does, and takes the time of prompts and of single tokens."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from engine.bench.errors import BenchError
from engine.bench.model_subject import LoadedSubject
from engine.events import Phase, Place
from engine.models.loader import LoadedModel
from engine.progress import CancelToken
from engine.session import Logits, Session


@dataclass(frozen=True)
class Work:
    """What a prompt or some tokens took. `seconds`: of each step; executions of experts by where they lay.

    `missing_experts` are the different experts among the missing executions.
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
    """One conversation at a time with random tokens; the same ones, and the same routing, for each policy."""

    def __init__(self, subject: LoadedSubject, cancel: CancelToken, context: int | None = None) -> None:
        self._parts = subject.parts
        self._cancel = cancel
        plan = subject.plan
        self.session = Session(self._parts.model, context or plan.context_length, plan.prefill_chunk)
        self._random = np.random.default_rng(0)

    def use(self, policy: str) -> None:
        """Let a policy decide from now on; what slots hold is forgotten."""
        executor = self._parts.executor
        executor.policy = policy
        if executor.gpu is not None:
            executor.gpu.empty_slots()

    def read(self, tokens: int) -> Work:
        """A new conversation of `tokens` tokens, up to the first token's logits. Raises Cancelled."""
        prompt = self._ids(tokens)
        if self._parts.model.routing is not None:
            self._parts.model.routing.restart()
        self._parts.counters.reset()
        begin = time.perf_counter()
        self.session.begin(prompt)
        last: Logits | None = None
        for logits in self.session.read(prompt):
            self._cancel.raise_if_cancelled()
            last = logits
        seconds = time.perf_counter() - begin
        _check(last)
        return work_of(self._parts, (seconds,), Phase.PREFILL)

    def decode(self, tokens: int) -> Work:
        """`tokens` single tokens after what was read. Raises Cancelled between two."""
        self._parts.counters.reset()
        ids = self._ids(tokens)
        seconds = []
        for token in ids:
            self._cancel.raise_if_cancelled()
            begin = time.perf_counter()
            logits = self.session.step(token)
            seconds.append(time.perf_counter() - begin)
        _check(logits)
        return work_of(self._parts, tuple(seconds), Phase.DECODE)

    def _ids(self, count: int) -> list[int]:
        ids: list[int] = self._random.integers(0, self._parts.info.config.vocab_size, count).tolist()
        return ids


def work_of(parts: LoadedModel, seconds: tuple[float, ...], phase: Phase) -> Work:
    """The times with the executions that were counted meanwhile."""
    counts = parts.counters.snapshot().counts[phase]
    missing = counts.sum(axis=2) - counts[..., Place.GPU]
    resident = int(counts[..., Place.GPU].sum())
    return Work(seconds, resident, int(missing.sum()), int(np.count_nonzero(missing)))


def _check(logits: Logits | None) -> None:
    if logits is None or not np.isfinite(logits).all():
        raise BenchError("The model's output is not finite: its figures would mean nothing.")
