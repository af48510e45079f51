"""Counters of what the experts did: a running total that one thread adds to and others take snapshots of."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from engine.events import ExpertHits, Phase, Place
from engine.policy import IDLE


class HitCounters:
    """Executions per phase × layer × expert × place, and the bytes of expert weights copied to the GPU."""

    def __init__(self, layers: int, experts: int) -> None:
        self._counts = ExpertHits.zeros(layers, experts).counts
        self._streamed_bytes = 0
        self._lock = threading.Lock()

    def add(self, phase: Phase, layer: int, plan: npt.NDArray[np.int8]) -> None:
        """Count one step of a layer: `plan` is the place of each expert, as in `policy.LayerPlan.places`."""
        active = np.flatnonzero(plan != IDLE)
        with self._lock:
            self._counts[phase, layer, active, plan[active]] += 1

    def add_each(self, phase: Phase, layer: int, experts: Iterable[int], place: Place) -> None:
        """Count one execution for each of a few experts, all at one place."""
        with self._lock:
            for expert in experts:
                self._counts[phase, layer, expert, place] += 1

    def add_chosen(
        self,
        phase: Phase,
        layers: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int32],
        place: Place,
    ) -> None:
        """Count one execution for each different expert that a layer's tokens chose, all at one place.

        `layers` are different ones; `chosen` is [layers, choices].
        """
        ran = np.zeros(self._counts.shape[1:3], dtype=np.bool_)
        ran[layers[:, None], chosen] = True
        with self._lock:
            self._counts[phase, ..., place] += ran

    def add_bytes(self, count: int) -> None:
        """Count `count` bytes of weights copied to the GPU."""
        with self._lock:
            self._streamed_bytes += count

    @property
    def streamed_bytes(self) -> int:
        """Bytes of expert weights copied to the GPU since the last reset."""
        return self._streamed_bytes

    def snapshot(self) -> ExpertHits:
        """The counts so far, as a copy that no longer changes."""
        with self._lock:
            return ExpertHits(self._counts.copy())

    def reset(self) -> None:
        """Start again from zero."""
        with self._lock:
            self._counts[...] = 0
            self._streamed_bytes = 0
