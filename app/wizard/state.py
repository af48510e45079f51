"""What the wizard knows at a moment. Plain data: no Qt, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.hardware import Hardware
    from engine.profile import Probe, Profile
    from engine.status import EngineStatus


class Step(StrEnum):
    """The pages, in their order."""

    COMPUTER = "computer"
    PLAN = "plan"
    GET = "get"
    CALIBRATE = "calibrate"
    RESULT = "result"


class Work(StrEnum):
    """The long operation that is running. At most one does."""

    FETCH = "fetch"  # converting the starter, or downloading
    CHECK = "check"  # is there a valid profile for this model on this computer?
    LOAD = "load"
    CALIBRATE = "calibrate"


class Measured(StrEnum):
    """Whether the chosen model has been calibrated on this computer."""

    NO = "no"
    SKIPPED = "skipped"  # the user goes on with estimates
    YES = "yes"


class Kind(StrEnum):
    """Where the chosen model comes from."""

    STARTER = "starter"
    HUB = "hub"
    FOLDER = "folder"


class After(StrEnum):
    """What to do once the running work has stopped."""

    STAY = "stay"
    SKIP = "skip"
    CLOSE = "close"


@dataclass(frozen=True)
class Choice:
    """A model: the starter, a hub repository stored below `folder`, or the checkpoint in `folder`.

    `precision` is what its experts are to be held in; "" leaves that to the settings.
    """

    kind: Kind
    repo_id: str = ""
    folder: Path | None = None
    precision: str = ""


@dataclass(frozen=True)
class FlowState:
    """Everything the pages show. Changed only by `flow.advance`, which returns a new one."""

    steps: tuple[Step, ...] = tuple(Step)
    step: Step = Step.COMPUTER
    hardware: Hardware | None = None
    choice: Choice | None = None
    got: Choice | None = None  # the choice that `model_path` belongs to
    planned: bool = False  # the plan of `choice` has been worked out
    short: bool = False  # and something it needs is missing
    force: bool = False  # "Do it anyway"
    work: Work | None = None
    after: After | None = None  # not None: stopping was asked for
    progress: Progress | None = None
    model_path: Path | None = None
    status: EngineStatus | None = None  # of the loaded model
    measured: Measured = Measured.NO
    profile: Profile | None = None  # the valid one, saved or just measured
    note: str = ""  # why a saved profile is not valid any more
    probes: tuple[Probe, ...] = ()
    problem: EngineError | None = None  # what went wrong last, shown on the page
    stopped: bool = False  # the step's work was cancelled; it can be continued
    eager: bool = True  # entering a step starts its work; not when an earlier visit is taken up again
    finished: bool = False  # on to the chat
    closed: bool = False

    @property
    def loaded(self) -> bool:
        """Whether the chosen model is in memory."""
        return self.status is not None
