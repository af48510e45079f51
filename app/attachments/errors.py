"""What can be wrong with a file that is to be attached, told in the user's words."""

from __future__ import annotations

from engine.errors import EngineError


class AttachmentError(EngineError):
    """A file was not attached. The message is as it was."""
