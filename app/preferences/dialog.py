"""The settings' window: pages at the left, rows at the right. Every change applies at once."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.dialogs import show_error
from app.i18n import tr
from app.preferences.appearance_page import AppearancePage
from app.preferences.data_page import DataPage
from app.preferences.model_page import ModelPage
from app.preferences.page import SettingsPage
from app.preferences.shortcuts_page import ShortcutsPage
from app.preferences.simple_pages import AnswersPage, ChatsPage, PromptPage
from app.settings import SettingsStore
from app.shortcuts.shortcuts import Shortcuts
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.frames import scrolling, separator
from app.widgets.labels import hint
from app.wizard.knowledge import RealKnowledge
from app.wizard.offers import Knowledge
from app.worker import EngineWorker
from engine.params import GenerationParams
from engine.status import EngineStatus


class PreferencesDialog(QDialog):
    """All settings. `status` and `defaults` are those of the loaded model, None while none is loaded.

    Without `shortcuts`, where there is no main window, there is no page about them.
    """

    def __init__(
        self,
        settings: SettingsStore,
        worker: EngineWorker,
        status: EngineStatus | None = None,
        defaults: GenerationParams | None = None,
        parent: QWidget | None = None,
        knowledge: Knowledge | None = None,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Settings – Fiddler Chat"))
        self.setAccessibleName(tr("Settings"))
        self.model = ModelPage(settings, worker, knowledge or RealKnowledge(), status)
        self.answers = AnswersPage(settings, defaults)
        self.prompt = PromptPage(settings)
        self.chats = ChatsPage(settings)
        self.appearance = AppearancePage(settings)
        self.shortcuts = ShortcutsPage(settings, shortcuts) if shortcuts is not None else None
        self.data = DataPage(settings)
        self.pages: tuple[SettingsPage, ...] = (
            self.model,
            self.answers,
            self.prompt,
            self.chats,
            self.appearance,
            *((self.shortcuts,) if self.shortcuts is not None else ()),
            self.data,
        )
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Pages"))
        mark(self.list, pages=True)
        self.stack = QStackedWidget(self)
        for page in self.pages:
            item = QListWidgetItem(page.name, self.list)
            item.setSizeHint(QSize(0, round(self.fontMetrics().height() * 2.1)))
            self.stack.addWidget(scrolling(page))
            page.trouble.connect(lambda error: show_error(self, error))
        self.list.currentRowChanged.connect(self.stack.setCurrentIndex)
        self.list.setCurrentRow(0)
        self.close_button = push_button(tr("Close"), self.accept, self)
        self.close_button.setDefault(True)
        self.finished.connect(self._on_finished)
        self._lay_out()
        unit = self.fontMetrics().height()
        room = self.screen().availableSize()
        self.setMinimumSize(min(unit * 34, room.width()), min(unit * 20, room.height()))
        self.resize(min(unit * 52, room.width()), min(unit * 38, round(room.height() * 0.92)))
        self.list.setFocus()

    def _lay_out(self) -> None:
        side = QFrame(self)
        mark(side, surface=True)
        column = QVBoxLayout(side)
        column.setContentsMargins(12, 20, 12, 20)
        column.addWidget(self.list)
        widest = max(self.fontMetrics().horizontalAdvance(page.name) for page in self.pages)
        side.setFixedWidth(widest + 72)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(28, 12, 28, 16)
        buttons.addWidget(hint(tr("Changes apply at once."), self), 1)
        buttons.addWidget(self.close_button)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.stack, 1)
        right.addWidget(separator(self))
        right.addLayout(buttons)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(side)
        layout.addLayout(right, 1)

    def show_page(self, page: SettingsPage) -> None:
        """Turn to `page`."""
        self.list.setCurrentRow(self.pages.index(page))

    def _on_finished(self) -> None:
        for page in self.pages:
            page.close_page()
