"""What can be wrong with a file that chats are to come from."""

from __future__ import annotations

from engine.errors import EngineError


class ImportFileError(EngineError):
    """A file could not be imported. No chat was changed or added."""


class UnreadableError(ValueError):
    """A part of a file is not what its format demands; the text says which part, for the report."""
