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

from engine.costs import ExpertCosts

# What dividing an expert must gain over the best plan of whole ones. Two pieces have costs that the model
# does not know; below this, it is as likely to lose.
_LEAST_GAIN = 0.02


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
        self, missing: Sequence[int], resident: Sequence[int], costs: ExpertCosts, panels: int
    ) -> None:
        """`missing`: their token counts, in the order in which they would be copied (see `gain`).

        `resident`: token counts of the experts that run on the GPU anyway. `panels`: pieces of an expert.
        """
        self._panels = panels
        self._count = len(missing)
        self._cpu = [costs.cpu_lat(tokens) for tokens in missing]
        self._gpu = [costs.gpu_lat(tokens) for tokens in missing]
        self._resident = sum(costs.gpu_lat(tokens) for tokens in resident)
        self._copy = costs.transfer_lat()
        self._copy_start = min(costs.start_copy(), self._copy)
        self._cpu_start = min(costs.start_cpu(), *self._cpu) if missing else 0.0
        together = costs.at_once(sum(missing) / max(1, len(missing)))
        # Less than 1 would be noise: nobody is faster for being disturbed.
        self._slowdown = max(1.0, together.cpu_slowdown)
        self._stretch = max(1.0, together.copy_seconds / self._copy)

    def times(self, copied_panels: int) -> Times:
        """With so many panels copied, 0 to all of them."""
        whole, rest = divmod(copied_panels, self._panels)
        return Times(*map(float, self._times(whole, rest / self._panels)))

    def best(self) -> int:
        """How many panels to copy, so that the layer is finished first."""
        shares = np.arange(1, self._panels + 1) / self._panels
        best_whole, whole_seconds = 0, self.times(0).seconds
        best, seconds = 0, whole_seconds
        for whole in range(self._count):
            cpu, _, gpu = self._times(whole, shares)
            finish = np.maximum(cpu, gpu)
            at = int(finish.argmin())
            if finish[at] < seconds:
                best, seconds = whole * self._panels + at + 1, float(finish[at])
            if finish[-1] < whole_seconds:
                best_whole, whole_seconds = (whole + 1) * self._panels, float(finish[-1])
        return best if seconds < (1 - _LEAST_GAIN) * whole_seconds else best_whole

    def _times(self, whole: int, share: Any) -> tuple[Any, Any, Any]:
        """`Times` with the first `whole` experts copied and a share (a number or an array) of the next."""
        left = self._count - whole - share  # experts on the CPU
        alone: Any = sum(self._cpu[whole:])
        tail: Any = 0.0
        copied: Any = 0.0
        if whole < self._count:
            alone = alone - share * self._cpu[whole]
            tail = share * self._gpu[whole]
            copied = self._copy_start * (share > 0) + share * (self._copy - self._copy_start)
        # A whole expert's time contains the start; a part of one needs all of it.
        work = np.where(left > 0, alone + self._cpu_start * np.maximum(0.0, 1 - left), 0.0)
        copied = whole * self._copy + copied
        # Both slow down until one of them is through; the smaller term is the one that holds.
        slowed = self._slowdown * work
        cpu = np.minimum(slowed, work + self._stretch * copied * (1 - 1 / self._slowdown))
        lag = slowed * (1 - 1 / self._stretch)

        def arrives(seconds: Any) -> Any:
            return np.minimum(self._stretch * seconds, seconds + lag)

        copy = arrives(copied)
        computed = sum(self._gpu[:whole]) + tail
        gpu = np.maximum(self._resident + computed, copy + tail)
        if whole:  # the GPU computes without a pause after the first copy, or waits for each up to the last
            gpu = np.maximum(gpu, arrives(self._copy) + computed)
            gpu = np.maximum(gpu, arrives(whole * self._copy) + self._gpu[whole - 1] + tail)
        return cpu, copy, gpu
