"""Where each expert of a step runs. Pure functions over numbers, without torch or a GPU.

The names are those of `engine.options.POLICIES`:

- "paper": Algorithm 1 of Fiddler (arXiv 2402.07033, section 3.2). An expert runs on the GPU if its weights
  are there, or if the CPU would take longer than copying the weights and computing there.
- "cpu": a static split; what is not on the GPU runs on the CPU.
- "stream": what is not on the GPU is copied to it, as offloading systems do.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.events import Place

IDLE = -1  # in a plan: the expert has no token and does not run


class ExpertCosts(Protocol):
    """The latency model, as far as a policy asks it. Seconds for one expert."""

    def cpu_lat(self, tokens: float) -> float:
        """Running `tokens` tokens on the CPU."""
        ...

    def gpu_lat(self, tokens: float = 1) -> float:
        """Running `tokens` tokens on the GPU, weights already there."""
        ...

    def transfer_lat(self) -> float:
        """Copying the expert's weights to the GPU."""
        ...


def decide(
    policy: str,
    resident: npt.NDArray[np.bool_],
    tokens: npt.NDArray[np.int64],
    costs: ExpertCosts | None,
) -> npt.NDArray[np.int8]:
    """The place of every expert of one layer in one step on a machine with a GPU.

    Args:
        policy: "paper", "cpu" or "stream".
        resident: bool [experts], whose weights are on the GPU.
        tokens: int [experts], how many tokens each is given.
        costs: the machine's latency model. Without one, "paper" has no reason to copy and uses the CPU.

    Returns:
        int8 [experts]: a `Place`, or `IDLE` for an expert without tokens.
    """
    plan = np.where(resident, np.int8(Place.GPU), np.int8(missing_place(policy)))
    if policy == "paper" and costs is not None:
        for expert in np.flatnonzero(~resident & (tokens > 0)):
            count = int(tokens[expert])
            if costs.cpu_lat(count) > costs.gpu_lat(count) + costs.transfer_lat():
                plan[expert] = Place.STREAMED
    plan[tokens == 0] = IDLE
    return plan


def missing_place(policy: str) -> Place:
    """Where an expert that is not on the GPU runs unless costs say otherwise."""
    if policy not in ("paper", "cpu", "stream"):
        raise ValueError(f"unknown policy {policy!r}")
    return Place.STREAMED if policy == "stream" else Place.CPU
