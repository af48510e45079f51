"""Errors of the program itself that reach the user, in the same shape as the engine's."""

from __future__ import annotations

import traceback

from engine.errors import EngineError


class UnexpectedError(EngineError):
    """A fault in the program: shown calmly, with details that can be copied into a report.

    `details` is the traceback as text; it is never shown unasked.
    """

    def __init__(self, operation: str, error: BaseException) -> None:
        super().__init__(
            "Something unexpected happened.",
            why=f"{operation} ended with a fault in the program ({type(error).__name__}).",
            action="Your conversations are saved. Try again; if it happens again, report the details.",
        )
        self.details = "".join(traceback.format_exception(error))


class MemoryShortageError(EngineError):
    """The operating system refused memory in the middle of an operation."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} stopped because the computer ran out of memory.",
            why="Other programs and the model together need more RAM than there is.",
            action="Close other programs, choose a shorter context in the settings, or a smaller model.",
        )


def details_of(error: EngineError) -> str:
    """What "Copy details" copies: the three sentences and, for a fault of the program, its traceback."""
    parts = [error.what, error.why, error.action, getattr(error, "details", "")]
    return "\n".join(part for part in parts if part)
