"""The page about the window's looks: theme, font, zoom, language, and what moves."""

from __future__ import annotations

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QSpinBox, QWidget

from app.i18n import AS_THE_DESKTOP, languages, tr
from app.preferences.page import SettingsPage
from app.settings import SettingsStore, registry


class AppearancePage(SettingsPage):
    """What the window looks like; every change shows at once, but for the language."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(tr("Appearance"), settings, parent)
        self.add_option(registry.THEME)
        self.add_option(registry.FONT_FAMILY, choices=_fonts())
        size = self.add_option(registry.FONT_SIZE, automatic=tr("0 (as the desktop)"))
        zoom = self.add_option(registry.ZOOM)
        assert isinstance(size, QSpinBox)
        assert isinstance(zoom, QSpinBox)
        size.setSuffix(tr(" pt"))
        zoom.setSuffix("%")
        zoom.setSingleStep(10)
        self.add_option(registry.LANGUAGE, choices=[(AS_THE_DESKTOP, tr("As the desktop")), *languages()])
        self.add_option(registry.REDUCED_MOTION)
        self.add_option(registry.PANEL_VISIBLE)
        self.content.addStretch(1)


def _fonts() -> list[tuple[str, str]]:
    """The fonts that this computer has for text in the user's script, and the desktop's own at first."""
    families = sorted({name for name in QFontDatabase.families() if not QFontDatabase.isPrivateFamily(name)})
    return [("", tr("As the desktop")), *((name, name) for name in families)]
