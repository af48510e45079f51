"""What can go wrong with backups."""

from __future__ import annotations

from engine.errors import EngineError


class BackupError(EngineError):
    """A backup could not be made, or a file is none that can be restored. The present data is unchanged."""
