"""What choosing a model means for this computer: its plan, what it needs, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.wizard.state import Choice
from engine.checkpoint.inspect import ModelInfo
from engine.hardware import Hardware
from engine.options import LoadOptions
from engine.plan import Plan
from engine.profile import Profile
from engine.requirements import Need


@dataclass(frozen=True)
class Offer:
    """A choice worked out: the model's facts, the plan, the disk space (None: the model is here already)."""

    choice: Choice
    info: ModelInfo
    plan: Plan
    disk: Need | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        """All needs, in the order RAM, VRAM, disk."""
        return (*self.plan.requirements.needs, *((self.disk,) if self.disk else ()))

    @property
    def other_precision(self) -> str:
        """A precision to offer instead of the planned one: the best for which memory suffices; "" for none.

        Where everything fits in the precision of the model's files, there is nothing to choose.
        """
        best = self.plan.best_precision
        return best if best != self.plan.precision else ""

    @property
    def short(self) -> bool:
        """Whether something is missing."""
        return any(not need.fits for need in self.needs)


class Knowledge(Protocol):
    """What the wizard asks of the engine besides the worker's operations. All methods may wait for a disk."""

    def detect(self, *, quick: bool = False) -> Hardware:
        """What this computer is; `quick` leaves out what must be measured."""

    def offer(self, choice: Choice, hardware: Hardware, options: LoadOptions) -> Offer:
        """Work out a choice; raises CheckpointError for a folder that holds no usable model."""

    def profile(self, model: Path, hardware: Hardware, options: LoadOptions) -> tuple[Profile | None, str]:
        """The valid profile of a model on this computer, or None and, if there was one, why it is not valid.

        Raises CheckpointError for a model that cannot be used.
        """
