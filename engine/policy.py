"""Where each expert of a step runs. Pure functions over numbers, without torch or a GPU.

The names are those of `engine.options.POLICIES`:

- "makespan": the CPU and the GPU work on the layer at the same time, divided so that it is finished first
  (`engine.makespan`). One expert may be divided between them.
- "paper": Algorithm 1 of Fiddler (arXiv 2402.07033, section 3.2). An expert runs on the GPU if its weights
  are there, or if the CPU would take longer than copying the weights and computing there.
- "cpu": a static split; what is not on the GPU runs on the CPU.
- "stream": what is not on the GPU is copied to it, as offloading systems do.

All of them put the missing experts in the same order and differ in how much of it they copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.costs import ExpertCosts
from engine.events import Place
from engine.makespan import Division, Times, gain

IDLE = -1  # in a plan: the expert has no token and does not run

_KNOWN = ("makespan", "paper", "cpu", "stream")
_UNKNOWN = Times(0.0, 0.0, 0.0)
_AHEAD_STEP = 0.5e-3  # seconds: finer, and no plan would be made twice
_MEMO_LIMIT = 4096  # plans, of some hundred bytes each; decode with 8 experts of which 2 are chosen needs 28


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """Where the experts of one layer run in one step. The arrays are shared between steps: read-only.

    `places` is int8 [experts], a `Place` or `IDLE`. `cpu_panels` is int32 [experts]: the CPU computes an
    expert's panels [0, cpu_panels), the GPU the copied rest; 0 for what is on the GPU and for the idle.
    `copies` are the experts to copy, wholly or in part, in this order. `predicted` are the times that the
    costs promise, zeros without costs. `load` is how many tokens a missing expert has on average.
    """

    places: npt.NDArray[np.int8]
    cpu_panels: npt.NDArray[np.int32]
    copies: tuple[int, ...]
    predicted: Times
    load: float = 0.0

    @property
    def seconds(self) -> float:
        """When the layer's experts should be through."""
        return self.predicted.seconds


def decide(
    policy: str,
    resident: npt.NDArray[np.bool_],
    tokens: npt.NDArray[np.int64],
    costs: ExpertCosts | None,
    panels: int,
    *,
    ahead: float = 0.0,
) -> LayerPlan:
    """The plan for one layer in one step on a machine with a GPU.

    Args:
        policy: one of `engine.options.POLICIES`; ValueError for another name.
        resident: bool [experts], whose weights are on the GPU.
        tokens: int [experts], how many tokens each is given.
        costs: the machine's latency model. Without one there is no reason to copy: "makespan" and "paper" use
            the CPU.
        panels: of an expert (`ExpertShape.panels`).
        ahead: seconds for which the copy stream is still busy with what was begun before.
    """
    if costs is None:
        return _decide(policy, resident, tokens, None, panels, 0.0)
    memo = costs.memo
    ahead = round(ahead / _AHEAD_STEP) * _AHEAD_STEP
    key = (policy, panels, ahead, resident.tobytes(), tokens.tobytes())
    plan: LayerPlan | None = memo.get(key)
    if plan is None:
        usable = costs if isfinite(costs.transfer_lat()) else None
        plan = _decide(policy, resident, tokens, usable, panels, ahead)
        if len(memo) >= _MEMO_LIMIT:
            memo.clear()
        memo[key] = plan
    return plan


def _decide(
    policy: str,
    resident: npt.NDArray[np.bool_],
    tokens: npt.NDArray[np.int64],
    costs: ExpertCosts | None,
    panels: int,
    ahead: float,
) -> LayerPlan:
    counts = tokens.tolist()
    active = np.flatnonzero(tokens > 0).tolist()
    missing = [expert for expert in active if not resident[expert]]
    if costs is not None:
        gains = {expert: gain(counts[expert], costs) for expert in missing}
        missing.sort(key=gains.__getitem__, reverse=True)
    at_gpu = sorted(counts[expert] for expert in active if resident[expert])
    copied, predicted = _divide(policy, [counts[expert] for expert in missing], at_gpu, costs, panels, ahead)
    places = np.full(len(counts), IDLE, dtype=np.int8)
    places[active] = Place.GPU
    cpu_panels = np.zeros(len(counts), dtype=np.int32)
    for number, expert in enumerate(missing):
        on_cpu = panels - min(max(copied - number * panels, 0), panels)
        cpu_panels[expert] = on_cpu
        places[expert] = Place.STREAMED if on_cpu == 0 else Place.CPU if on_cpu == panels else Place.SPLIT
    places.flags.writeable = cpu_panels.flags.writeable = False
    load = sum(counts[expert] for expert in missing) / max(1, len(missing))
    return LayerPlan(places, cpu_panels, tuple(missing[: -(-copied // panels)]), predicted, load)


def _divide(
    policy: str,
    missing: Sequence[int],
    resident: Sequence[int],
    costs: ExpertCosts | None,
    panels: int,
    ahead: float,
) -> tuple[int, Times]:
    """How many panels of the missing experts, given by their tokens in order, are copied; and the times."""
    if policy not in _KNOWN:
        raise ValueError(f"unknown policy {policy!r}")
    everything = panels * len(missing)
    if costs is None:
        return everything if policy == "stream" else 0, _UNKNOWN
    key: Any = (policy, panels, ahead, tuple(missing), tuple(resident))  # other experts, the same numbers
    known: tuple[int, Times] | None = costs.memo.get(key)
    if known is not None:
        return known
    division = Division(missing, resident, costs, panels, ahead)
    if policy == "makespan":
        copied = division.best()
    elif policy == "paper":
        pays = [costs.cpu_lat(each) > costs.gpu_lat(each) + costs.transfer_lat() for each in missing]
        copied = panels * sum(pays)
    else:
        copied = everything if policy == "stream" else 0
    costs.memo[key] = copied, division.times(copied)
    return costs.memo[key]  # type: ignore[no-any-return]
