"""Errors of the program itself that reach the user, in the same shape as the engine's."""

from __future__ import annotations

from app.fault_report import fault_report
from app.i18n import tr
from engine.errors import EngineError


class UnexpectedError(EngineError):
    """A fault in the program: shown calmly, with details that can be copied into a report.

    `details` say where it happened, without anything that was written; they are never shown unasked.
    """

    def __init__(self, operation: str, error: BaseException) -> None:
        super().__init__(
            tr("Something unexpected happened."),
            why=tr(
                "{operation} ended with a fault in the program ({kind}).",
                operation=operation,
                kind=type(error).__name__,
            ),
            action=tr("Your conversations are saved. Try again; if it happens again, report the details."),
        )
        self.details = fault_report(error)


class MemoryShortageError(EngineError):
    """The operating system refused memory in the middle of an operation."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            tr("{operation} stopped because the computer ran out of memory.", operation=operation),
            why=tr("Other programs and the model together need more RAM than there is."),
            action=tr("Close other programs, choose a shorter context in the settings, or a smaller model."),
        )


def details_of(error: EngineError) -> str:
    """What "Copy details" copies: the three sentences and, for a fault of the program, its place."""
    parts = [error.what, error.why, error.action, getattr(error, "details", "")]
    return "\n".join(part for part in parts if part)
