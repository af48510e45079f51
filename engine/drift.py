"""Keeps the latency model true while it is used: compares what layers take with what was predicted.

A machine is not the one that was calibrated when another program runs, when a laptop grows warm, or while the
experts' memory is still being pinned. Predictions that are wrong by a fifth divide layers wrongly: they are a
reason to fit anew. Smaller errors are trimmed away bit by bit, because a layer is finished when its slower
side is, so that even a tenth too much on one of them is time lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engine.costs import AtOnce, ExpertCosts
from engine.events import Prediction
from engine.policy import LayerPlan

TOLERANCE = 0.2  # relative error of a side's times from which on its costs are changed
_TRIM, _NOTICED = 0.5, 0.02  # what part of a smaller error is corrected, from which size on
# Layers over which errors are averaged: two tokens of Mixtral. Single layers vary by 10 % and more.
_WINDOW = 64
# After so many layers in which a side had nothing to do, its costs go half way back to what was calibrated.
# Otherwise a side that was slow once, as copies are before memory is pinned, would never be tried again.
_FORGET = 16 * _WINDOW
_FEW = 4.0  # tokens per expert up to which reading weights dominates; what slows that may not slow arithmetic
_NEARLY = 0.05  # a scale this near to 1 goes back to it
_LEAST = 1e-6  # seconds: shorter predictions say nothing


@dataclass
class _Side:
    """One side's times: seconds predicted and observed lately, in sum, and what to multiply its costs by."""

    scale: float = 1.0
    predicted: float = 0.0
    observed: float = 0.0
    layers: int = 0
    idle: int = 0

    def add(self, predicted: float, observed: float) -> None:
        """Count a layer; nothing predicted means nothing to do, and what was observed is another layer's."""
        if predicted < _LEAST:
            self.idle += 1
            self.observed += observed
            return
        self.idle = 0
        self.predicted += predicted
        self.observed += observed
        self.layers += 1

    def corrected(self) -> tuple[bool, bool]:
        """Correct the scale once the window is full: whether it changed, and whether the error was large."""
        if self.layers < _WINDOW:
            return False, False
        ratio = self.observed / self.predicted
        wrong = ratio > 0 and not 1 / (1 + TOLERANCE) < ratio < 1 + TOLERANCE
        noticed = ratio > 0 and abs(ratio - 1) > _NOTICED
        change = ratio if wrong else ratio**_TRIM if noticed else 1.0
        self.scale *= change
        keep = 0.0 if wrong else 0.5  # old layers count half from now on
        self.predicted *= keep * change  # as it would be foretold now
        self.observed *= keep
        self.layers = int(keep * self.layers)
        return noticed, wrong

    def relaxed(self) -> bool:
        """Go half way back to what was calibrated if the side was idle for long; whether that is a change."""
        if self.idle < _FORGET:
            return False
        self.idle = 0
        before, half = self.scale, math.sqrt(self.scale)
        self.scale = half if abs(half - 1) > _NEARLY else 1.0
        return self.scale != before


class Drift:
    """Costs that follow the machine: calibrated ones, multiplied by what layers have lately taken more.

    The CPU's times for few tokens per expert and for many are followed apart. `refits` counts corrections of
    large errors. Used by one thread; `error` and `refits` may be read by any.
    """

    def __init__(self, costs: ExpertCosts) -> None:
        self.base = costs
        self.refits = 0
        self._cpu_few, self._cpu_many, self._copy = _Side(), _Side(), _Side()
        self._predicted = self._observed = 0.0
        self._layers = 0
        self._memo: dict[Any, Any] = {}

    @property
    def memo(self) -> dict[Any, Any]:
        """Plans made from the present costs."""
        return self._memo

    @property
    def prediction(self) -> Prediction:
        """How well layers were foretold lately."""
        return Prediction(self.error, self.refits)

    @property
    def error(self) -> float | None:
        """Relative error of the predicted times of layers lately: +0.1 is 10 % too slow. None if none ran."""
        return self._predicted / self._observed - 1 if self._observed > 0 else None

    def observe(self, plan: LayerPlan, cpu_seconds: float, copy_seconds: float) -> None:
        """Compare a layer that was carried out with its plan.

        `cpu_seconds`: from giving the CPU its share to its end. `copy_seconds`: of the copies that have ended
        since the last call; they may belong to the layer before, so that only sums over layers are compared.
        """
        cpu, copy, _ = plan.predicted
        if max(cpu, copy) < _LEAST:
            self._copy.observed += copy_seconds
            return
        self._keep_error(max(cpu, copy), max(cpu_seconds, copy_seconds))
        side = self._cpu_few if plan.load <= _FEW else self._cpu_many
        side.add(cpu, cpu_seconds if cpu >= _LEAST else 0.0)
        self._copy.add(copy, copy_seconds)
        changed, wrong = zip(side.corrected(), self._copy.corrected(), strict=True)
        relaxed = side.relaxed() | self._copy.relaxed()
        if any(changed) or relaxed:
            self._memo.clear()
        if any(wrong):
            self.refits += 1
            self._predicted = self._observed = 0.0
            self._layers = 0

    def _keep_error(self, predicted: float, observed: float) -> None:
        self._predicted += predicted
        self._observed += observed
        self._layers += 1
        if self._layers >= 2 * _WINDOW:
            self._predicted /= 2
            self._observed /= 2
            self._layers //= 2

    def cpu_lat(self, tokens: float) -> float:
        """Seconds for one expert on the CPU."""
        side = self._cpu_few if tokens <= _FEW else self._cpu_many
        return side.scale * self.base.cpu_lat(tokens)

    def gpu_lat(self, tokens: float = 1) -> float:
        """Seconds for one expert on the GPU: as calibrated, nobody else takes its memory's bandwidth."""
        return self.base.gpu_lat(tokens)

    def transfer_lat(self) -> float:
        """Seconds to copy one expert."""
        return self._copy.scale * self.base.transfer_lat()

    def start_cpu(self) -> float:
        """As calibrated."""
        return self.base.start_cpu()

    def start_copy(self) -> float:
        """As calibrated."""
        return self.base.start_copy()

    def at_once(self, tokens: float) -> AtOnce:
        """The rates of both at the same time, the copies' as they are lately."""
        slowdown, copy_seconds = self.base.at_once(tokens)
        return AtOnce(slowdown, self._copy.scale * copy_seconds)


def prediction_of(costs: ExpertCosts | None) -> Prediction:
    """How well costs foretold layers lately; nothing is known of costs that are not followed."""
    return costs.prediction if isinstance(costs, Drift) else Prediction()
