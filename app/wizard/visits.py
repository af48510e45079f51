"""Where a visit to the wizard starts: the first time, after an interruption, and from the chat window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.wizard.state import Choice, FlowState, Kind, Step
from engine.errors import EngineError
from engine.status import EngineStatus


@dataclass(frozen=True)
class Saved:
    """What earlier visits left behind: the choice, the complete model, or why it cannot be used any more."""

    choice: Choice | None = None
    model_path: Path | None = None
    problem: EngineError | None = None


def resume(saved: Saved) -> FlowState:
    """The state to go on with: nothing that was finished is done again, and nothing long starts unasked."""
    if saved.model_path is not None and saved.problem is None:
        choice = saved.choice or Choice(Kind.FOLDER, folder=saved.model_path)
        return FlowState(step=Step.GET, choice=choice, got=choice, model_path=saved.model_path, eager=False)
    if saved.problem is not None:
        return FlowState(step=Step.PLAN, choice=saved.choice, problem=saved.problem)
    if saved.choice is not None:
        return FlowState(step=Step.GET, choice=saved.choice, stopped=True)
    return FlowState()


def choose_model(current: Choice | None, status: EngineStatus | None) -> FlowState:
    """A visit from the chat window to choose another model; `status` is that of the loaded one, if any.

    The chosen model is looked at afresh, even the current one: its files or the settings may have changed.
    """
    return FlowState(step=Step.PLAN, choice=current, status=status)


def recalibrate(model_path: Path, status: EngineStatus | None) -> FlowState:
    """A visit from the settings that only measures again."""
    choice = Choice(Kind.FOLDER, folder=model_path)
    return FlowState(
        steps=(Step.CALIBRATE, Step.RESULT),
        step=Step.CALIBRATE,
        choice=choice,
        got=choice,
        model_path=model_path,
        status=status,
    )
