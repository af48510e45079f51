"""Drives a loaded model as a conversation does, and takes the time of prompts and of single tokens."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.bench.errors import BenchError
from engine.bench.model_subject import LoadedSubject
from engine.drift import Drift
from engine.events import Phase, Place
from engine.models.loader import LoadedModel
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
    """One conversation at a time with random tokens; the same ones, and the same routing, for each policy."""

    def __init__(self, subject: LoadedSubject, cancel: CancelToken, context: int | None = None) -> None:
        self._parts = subject.parts
        self._resident = subject.resident
        self._costs = subject.costs
        self._cancel = cancel
        plan = subject.plan
        self.session = Session(self._parts.model, context or plan.context_length, plan.prefill_chunk)
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
        self._parts.counters.reset()
        begin = time.perf_counter()
        self.session.begin(prompt)
        last: Logits | None = None
        for logits in self.session.read(prompt):
            self._cancel.raise_if_cancelled()
            last = logits
        seconds = time.perf_counter() - begin
        _check(last)
        return work_of(self._parts, self._resident, (seconds,), Phase.PREFILL)

    def decode(self, tokens: int) -> Work:
        """`tokens` single tokens after what was read. Raises Cancelled between two."""
        self._parts.counters.reset()
        self._parts.executor.account.pause()
        ids = self._ids(tokens)
        seconds = []
        for token in ids:
            self._cancel.raise_if_cancelled()
            begin = time.perf_counter()
            logits = self.session.step(token)
            seconds.append(time.perf_counter() - begin)
        _check(logits)
        return work_of(self._parts, self._resident, tuple(seconds), Phase.DECODE)

    def _ids(self, count: int) -> list[int]:
        ids: list[int] = self._random.integers(0, self._parts.info.config.vocab_size, count).tolist()
        return ids


def work_of(
    parts: LoadedModel, resident: npt.NDArray[np.bool_], seconds: tuple[float, ...], phase: Phase
) -> Work:
    """The times with the executions that were counted meanwhile. `resident`: bool [layers, experts]."""
    counts = parts.counters.snapshot().counts[phase]
    runs = counts.sum(axis=2)
    on_gpu = int(counts[..., Place.GPU].sum())
    # A prompt's experts that were copied ahead of their layer count as having been there: by the table they
    # are missing all the same.
    return Work(seconds, on_gpu, int(runs.sum()) - on_gpu, int(np.count_nonzero(runs[~resident])))


def _check(logits: Logits | None) -> None:
    if logits is None or not np.isfinite(logits).all():
        raise BenchError("The model's output is not finite: its figures would mean nothing.")
