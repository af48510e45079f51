"""What can be wrong with presets and with files of them."""

from __future__ import annotations

from engine.errors import EngineError


class PresetError(EngineError):
    """A preset cannot have this name, or the presets cannot be changed or saved."""


class PresetFileError(EngineError):
    """A file with presets cannot be used. Nothing was changed."""
