"""Every setting of the program, from all areas, by name and by key.

`settings.get(registry.THEME)` is typed; the key works as well: `settings["appearance.theme"]`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from app.settings.areas import appearance, chat, desktop, engine, remembered
from app.settings.areas.appearance import *
from app.settings.areas.chat import *
from app.settings.areas.desktop import *
from app.settings.areas.engine import *
from app.settings.areas.remembered import *
from app.settings.option import Option

AREAS: tuple[ModuleType, ...] = (appearance, chat, engine, desktop, remembered)


def options_of(area: ModuleType) -> tuple[Option[Any], ...]:
    """The options of one area, in the order in which they are written there."""
    return tuple(value for value in vars(area).values() if isinstance(value, Option))


OPTIONS: tuple[Option[Any], ...] = tuple(option for area in AREAS for option in options_of(area))

BY_KEY: dict[str, Option[Any]] = {option.key: option for option in OPTIONS}
assert len(BY_KEY) == len(OPTIONS), "two settings have the same key"
