"""When a layer is finished that the CPU and the GPU work on at the same time, and how best to divide it.

The experts that are not on the GPU are put in an order, those first that gain most by being copied there.
The first so many panels of that order are copied and computed on the GPU; the CPU computes the rest. At most
one expert is divided: its first panels run on the CPU, its last ones on the GPU. So a division is one number,
and the best one is found by trying them all.

The model of time: CPU and copies start together. While both run, the CPU takes `AtOnce.cpu_slowdown` times as
long and copies take `AtOnce.copy_seconds` for an expert; whoever is left continues at the speed it has alone.
Copies run one after the other; what was copied is computed while the next is on its way, after the experts
that are on the GPU anyway. The layer ends when both sides have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.costs import ExpertCosts

# What dividing an expert must gain over the best plan of whole ones. Two pieces have costs that the model
# does not know; below this, it is as likely to lose.
_LEAST_GAIN = 0.02
_ROUNDING = 1e-9  # a copy that gains nothing is not made

_Seconds = npt.NDArray[np.floating[Any]]


class Times(NamedTuple):
    """When each part of a layer's experts is through, in seconds from the layer's start.

    `cpu`: the CPU's share. `copy`: the last copy. `gpu`: everything on the GPU, copies included.
    """

    cpu: float
    copy: float
    gpu: float

    @property
    def seconds(self) -> float:
        """When the layer is through."""
        return max(self.cpu, self.gpu)


def gain(tokens: int, costs: ExpertCosts) -> float:
    """What the CPU saves beyond what the GPU computes if an expert with `tokens` tokens is copied.

    Copying costs the same for every expert: those with the largest gain are to be copied first.
    """
    return costs.cpu_lat(tokens) - costs.gpu_lat(tokens)


class Division:
    """The experts of one layer and step that are not on the GPU, to be divided between it and the CPU."""

    def __init__(
        self,
        missing: Sequence[int],
        resident: Sequence[int],
        costs: ExpertCosts,
        panels: int,
        ahead: float = 0.0,
    ) -> None:
        """`missing`: their token counts, in the order in which they would be copied (see `gain`).

        `resident`: token counts of the experts that run on the GPU anyway. `panels`: pieces of an expert.
        `ahead`: seconds of copies that were begun before, and come first.
        """
        self._panels = panels
        self._count = len(missing)
        # With a zero behind the last expert, where nothing is left to be divided.
        self._cpu = np.array([*map(costs.cpu_lat, missing), 0.0])
        self._gpu = np.array([*map(costs.gpu_lat, missing), 0.0])
        self._cpu_before, self._gpu_before = _sums_before(self._cpu), _sums_before(self._gpu)
        self._resident = sum(map(costs.gpu_lat, resident))
        self._ahead = ahead
        self._copy = costs.transfer_lat()
        self._copy_start = min(costs.start_copy(), self._copy)
        self._cpu_start = min(costs.start_cpu(), *self._cpu[:-1]) if missing else 0.0
        together = costs.at_once(sum(missing) / max(1, len(missing)))
        # Less than 1 would be noise: nobody is faster for being disturbed.
        self._slowdown = max(1.0, together.cpu_slowdown)
        self._stretch = max(1.0, together.copy_seconds / self._copy)

    def times(self, copied_panels: int) -> Times:
        """With so many panels copied, 0 to all of them."""
        return Times(*(float(each[0]) for each in self._times(np.array([copied_panels]))))

    def best(self) -> int:
        """How many panels to copy, so that the layer is finished first."""
        cpu, _, gpu = self._times(np.arange(self._panels * self._count + 1))
        seconds = np.maximum(cpu, gpu)
        whole = seconds[:: self._panels]
        best_whole = int(whole.argmin())
        if whole[best_whole] > (1 - _ROUNDING) * whole[0]:
            best_whole = 0
        best = int(seconds.argmin())
        pays = seconds[best] < (1 - _LEAST_GAIN) * whole[best_whole]
        return best if pays else best_whole * self._panels

    def _times(self, copied_panels: npt.NDArray[np.int64]) -> tuple[_Seconds, _Seconds, _Seconds]:
        """`Times` for each of several numbers of copied panels."""
        whole = copied_panels // self._panels
        share = (copied_panels - whole * self._panels) / self._panels
        on_cpu = self._count - whole - share  # experts
        # A whole expert's time contains the start; a part of one needs all of it.
        work = self._cpu_before[-1] - self._cpu_before[whole] - share * self._cpu[whole]
        work = np.where(on_cpu > 0, work + self._cpu_start * np.maximum(0.0, 1 - on_cpu), 0.0)
        part = (share > 0) * self._copy_start + share * (self._copy - self._copy_start)
        copied = self._ahead + whole * self._copy + part
        # Both slow down until one of them is through; the smaller term is the one that holds.
        slowed = self._slowdown * work
        cpu = np.minimum(slowed, work + self._stretch * copied * (1 - 1 / self._slowdown))
        lag = slowed * (1 - 1 / self._stretch)

        def arrives(seconds: _Seconds | float) -> _Seconds:
            return np.minimum(self._stretch * seconds, seconds + lag)

        copy = arrives(copied)
        tail = share * self._gpu[whole]
        computed = self._gpu_before[whole] + tail
        gpu = np.maximum(self._resident + computed, copy + tail)
        # The GPU computes without a pause after the first copy, or waits for each up to the last whole one.
        first = np.where(whole > 0, arrives(self._ahead + self._copy) + computed, 0.0)
        last = np.where(
            whole > 0, arrives(self._ahead + whole * self._copy) + self._gpu[whole - 1] + tail, 0.0
        )
        return cpu, copy, np.maximum(gpu, np.maximum(first, last))


def _sums_before(values: _Seconds) -> _Seconds:
    """Of the values in front of each; the last is the sum of all, as a zero stands behind them."""
    return np.concatenate(([0.0], np.cumsum(values[:-1])))
