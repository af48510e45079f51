"""The settings: one typed registry, one TOML file."""

from app.settings.option import Choice, Option, SettingsError
from app.settings.registry import BY_KEY, OPTIONS
from app.settings.store import SettingsStore
from app.settings.values import is_as_set, load_options

__all__ = [
    "BY_KEY",
    "OPTIONS",
    "Choice",
    "Option",
    "SettingsError",
    "SettingsStore",
    "is_as_set",
    "load_options",
]
