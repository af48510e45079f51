"""Ways through the wizard's state machine, for its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.wizard import flow
from app.wizard.events import (
    Begin,
    Calibrated,
    Checked,
    Choose,
    Detected,
    Event,
    Fetched,
    Loaded,
    Next,
    Planned,
    Probed,
)
from app.wizard.state import Choice, FlowState, Kind
from engine.errors import DownloadError, ShortageError

HARDWARE: Any = object()
PROBE: Any = object()
PROFILE: Any = object()
STATUS: Any = object()
STARTER = Choice(Kind.STARTER)
HUB = Choice(Kind.HUB, "someone/model", Path("/models"))
PATH = Path("/models/starter")
BROKEN = DownloadError("The connection broke.")
SHORT = ShortageError("3 GB of memory are missing.")


def walk(state: FlowState, *events: Event) -> tuple[FlowState, list[Any]]:
    """The state after `events`, and all effects on the way."""
    effects: list[Any] = []
    for event in events:
        state, more = flow.advance(state, event)
        effects += more
    return state, effects


def at_plan(choice: Choice = STARTER, short: bool = False) -> FlowState:
    return walk(FlowState(), Begin(), Detected(HARDWARE), Next(), Choose(choice), Planned(choice, short))[0]


def at_get(choice: Choice = STARTER) -> FlowState:
    return walk(at_plan(choice), Next())[0]


def at_calibrate() -> FlowState:
    """Loading the model, to measure it next."""
    return walk(at_get(), Fetched(PATH), Checked(None))[0]


def measuring() -> FlowState:
    return walk(at_calibrate(), Loaded(STATUS))[0]


def at_result() -> FlowState:
    return walk(measuring(), Probed(PROBE), Calibrated(PROFILE), Next())[0]
