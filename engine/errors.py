"""The engine's exceptions: one family, each error with what happened, why, and what to do next."""

from __future__ import annotations

# What reading a damaged file's JSON, and taking it apart, may raise.
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class EngineError(Exception):
    """Something the user can be told about.

    `what` happened, in one sentence; `why`, as far as it is known; `action`, what to do next. `str()` joins
    the three, so a program that shows only the text still shows everything.
    """

    def __init__(self, what: str, *, why: str = "", action: str = "") -> None:
        super().__init__(what, why, action)
        self.what = what
        self.why = why
        self.action = action

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.action) if part)


class CheckpointError(EngineError):
    """A model's files are missing, damaged, or of a kind this program does not read."""


class HardwareError(EngineError):
    """The machine lacks something that was asked for (an instruction set, a GPU, a driver)."""


class ShortageError(EngineError):
    """RAM, VRAM or disk looks short; the text names the missing amount. The user may go on anyway (force)."""


class MemoryFullError(EngineError):
    """Memory is not given by the system, or ran out: going on anyway is no way out."""


class CalibrationError(EngineError):
    """A measurement failed, or a saved profile cannot be used."""


class DownloadError(EngineError):
    """A file could not be fetched or does not have the expected content."""


class FileError(EngineError):
    """A file could not be written: the disk is full, or the folder cannot be written to."""


class GenerationError(EngineError):
    """A request cannot be generated (bad parameters, a prompt that is too long)."""


class PromptTooLongError(GenerationError):
    """A conversation is longer than the model's context: the same request would fail again."""


class Cancelled(EngineError):  # noqa: N818 - it is an outcome the user asked for, not a fault
    """The user cancelled a long operation; whatever it had finished is kept."""

    def __init__(self, what: str = "Cancelled.") -> None:
        super().__init__(what)
