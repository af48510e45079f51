"""What may happen to the wizard (events), and what it asks for (effects). Plain data: no Qt, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.wizard.state import Choice, Work
from engine.errors import EngineError
from engine.progress import Progress

if TYPE_CHECKING:
    from engine.hardware import Hardware
    from engine.profile import Probe, Profile
    from engine.status import EngineStatus


# --- What happens: the user's doing -------------------------------------------------------------------------


@dataclass(frozen=True)
class Begin:
    """The wizard appears."""


@dataclass(frozen=True)
class Choose:
    """A model was selected on the plan page."""

    choice: Choice


@dataclass(frozen=True)
class Force:
    """ "Do it anyway" was switched on or off; switched on after a shortage stopped the work, it goes on."""

    on: bool


@dataclass(frozen=True)
class Next:
    """The Next button."""


@dataclass(frozen=True)
class Back:
    """The Back button."""


@dataclass(frozen=True)
class Retry:
    """Start, continue or repeat the work of this page."""


@dataclass(frozen=True)
class Stop:
    """Cancel the running work, and stay on the page."""


@dataclass(frozen=True)
class Skip:
    """Go on without calibration."""


@dataclass(frozen=True)
class Close:
    """The window is being closed."""


# --- What happens: the machine's answers --------------------------------------------------------------------


@dataclass(frozen=True)
class Detected:
    """The computer's parts are known."""

    hardware: Hardware


@dataclass(frozen=True)
class DetectFailed:
    """The computer could not be examined."""

    error: EngineError


@dataclass(frozen=True)
class Planned:
    """The plan of a choice is known. `short`: RAM, VRAM or disk does not suffice."""

    choice: Choice
    short: bool


@dataclass(frozen=True)
class Progressed:
    """The running work got further."""

    progress: Progress


@dataclass(frozen=True)
class Fetched:
    """The model is complete in this folder."""

    path: Path


@dataclass(frozen=True)
class Checked:
    """The valid profile of the model on this computer, or None; `note` says why an old one is not valid."""

    profile: Profile | None
    note: str = ""


@dataclass(frozen=True)
class Loaded:
    """The model is in memory."""

    status: EngineStatus


@dataclass(frozen=True)
class StatusChanged:
    """The loaded model says something new about itself (after a calibration)."""

    status: EngineStatus


@dataclass(frozen=True)
class Probed:
    """One measurement of the calibration."""

    probe: Probe


@dataclass(frozen=True)
class Calibrated:
    """The calibration is complete and saved. `reload`: it takes effect when the model is loaded again."""

    profile: Profile
    reload: bool = False


@dataclass(frozen=True)
class Failed:
    """The running work ended with an error."""

    work: Work
    error: EngineError


@dataclass(frozen=True)
class Stopped:
    """The running work ended because it was cancelled."""

    work: Work


Event = (
    Begin | Choose | Force | Next | Back | Retry | Stop | Skip | Close | Detected | DetectFailed | Planned
    | Progressed | Fetched | Checked | Loaded | StatusChanged | Probed | Calibrated | Failed | Stopped
)  # fmt: skip


# --- What is to be done -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Detect:
    """Examine the computer; answer `Detected` or `DetectFailed`."""


@dataclass(frozen=True)
class Fetch:
    """Get the model; answer `Fetched`, `Failed` or `Stopped`."""

    choice: Choice
    force: bool


@dataclass(frozen=True)
class Check:
    """Look for a valid profile; answer `Checked`, or `Failed` when the model itself cannot be read."""

    path: Path


@dataclass(frozen=True)
class Load:
    """Load the model; answer `Loaded`, `Failed` or `Stopped`."""

    path: Path
    force: bool


@dataclass(frozen=True)
class Calibrate:
    """Measure; answer `Probed` repeatedly, then `Calibrated`, `Failed` or `Stopped`."""


@dataclass(frozen=True)
class CancelWork:
    """Stop the running work soon."""


@dataclass(frozen=True)
class Unload:
    """Take the loaded model out of memory: another one was chosen."""


@dataclass(frozen=True)
class RememberChoice:
    """Keep what was chosen, so that an interrupted download is found again."""

    choice: Choice


@dataclass(frozen=True)
class RememberModel:
    """Keep the folder of the complete model, and the precision that was chosen for it ("": none was)."""

    path: Path
    precision: str = ""


@dataclass(frozen=True)
class RememberCompleted:
    """Keep that the wizard is done."""


Effect = (
    Detect | Fetch | Check | Load | Calibrate | CancelWork | Unload
    | RememberChoice | RememberModel | RememberCompleted
)  # fmt: skip
