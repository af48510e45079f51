"""The pages that are little more than rows of settings."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.preferences.page import SettingsPage
from app.settings import SettingsStore, registry


class ChatsPage(SettingsPage):
    """How the message field behaves, and what chats do by themselves."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(tr("Chats"), settings, parent)
        self.add_option(registry.SEND_ON_ENTER)
        self.add_option(registry.SUGGEST_TITLES)
        self.content.addStretch(1)


class DesktopPage(SettingsPage):
    """How the program behaves beside others."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(tr("Desktop"), settings, parent)
        self.add_option(registry.NOTIFY)
        self.add_option(registry.KEEP_AWAKE)
        self.add_option(registry.ANNOUNCE)
        self.content.addStretch(1)
