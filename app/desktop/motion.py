"""Less motion: no effects of menus and lists, no moving stripes, no blinking cursor."""

from __future__ import annotations

import sys
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.settings import SettingsStore, registry
from app.theme import theme

_EFFECTS = (
    Qt.UIEffect.UI_General,
    Qt.UIEffect.UI_AnimateMenu,
    Qt.UIEffect.UI_FadeMenu,
    Qt.UIEffect.UI_AnimateCombo,
    Qt.UIEffect.UI_AnimateTooltip,
    Qt.UIEffect.UI_FadeTooltip,
    Qt.UIEffect.UI_AnimateToolBox,
)


def apply_motion(settings: SettingsStore) -> None:
    """Let things move, or not, as the settings and the desktop want it."""
    effects, flash = _as_the_desktop()
    still = settings.get(registry.REDUCED_MOTION) or _desktop_wants_stillness()
    for effect in _EFFECTS:
        QApplication.setEffectEnabled(effect, effect in effects and not still)
    QApplication.setCursorFlashTime(0 if still else flash)
    theme().set_still(still)


@cache
def _as_the_desktop() -> tuple[frozenset[Qt.UIEffect], int]:
    """The effects and the rhythm of the cursor (ms) that the program was started with."""
    effects = frozenset(effect for effect in _EFFECTS if QApplication.isEffectEnabled(effect))
    return effects, QApplication.cursorFlashTime()


def _desktop_wants_stillness() -> bool:
    """Qt tells it by its general effect, but on Windows alone: elsewhere that is off anyway."""
    return sys.platform == "win32" and Qt.UIEffect.UI_General not in _as_the_desktop()[0]
