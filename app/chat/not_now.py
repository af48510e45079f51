"""Why a chat cannot be answered or changed at the moment. Pure."""

from __future__ import annotations

from app.i18n import tr
from engine.errors import EngineError


def while_answering() -> EngineError:
    """For what must wait for the answer that is being written."""
    return EngineError(
        tr("An answer is being written."), action=tr("Stop it with Escape, or wait for its end.")
    )


def not_now(*, busy: bool, model: bool) -> EngineError | None:
    """Why no answer can begin; None if one can."""
    if busy:
        return while_answering()
    if not model:
        return EngineError(tr("There is no model that could answer."), action=tr("Load one first."))
    return None
