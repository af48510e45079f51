"""The window's view of where files lie: the engine's folders, and the app's own files in the data folder."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from engine.paths import asset, assets_dir, data_dir, ensure_dir, models_dir, profiles_dir

__all__ = [
    "asset",
    "assets_dir",
    "data_dir",
    "database_path",
    "documents_dir",
    "ensure_dir",
    "log_path",
    "models_dir",
    "presets_path",
    "profiles_dir",
    "settings_path",
]


def database_path() -> Path:
    """The conversations (SQLite; `-wal` and `-shm` lie beside it)."""
    return data_dir() / "chats.sqlite3"


def settings_path() -> Path:
    """The settings (TOML)."""
    return data_dir() / "settings.toml"


def presets_path() -> Path:
    """The user's presets (JSON)."""
    return data_dir() / "presets.json"


def log_path() -> Path:
    """The log of the running program."""
    return data_dir() / "logs" / "fiddler-chat.log"


def documents_dir() -> Path:
    """Where exports are offered to be saved: the user's documents folder."""
    return Path(platformdirs.user_documents_dir())
