"""The settings' window: pages at the left, rows at the right. Every change applies at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSize, QTimer, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStackedWidget,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from app.chat.undo_bar import UndoBar
from app.dialogs import show_error
from app.i18n import tr
from app.preferences.answers_page import AnswersPage
from app.preferences.appearance_page import AppearancePage
from app.preferences.data_page import DataPage
from app.preferences.model_page import ModelPage
from app.preferences.page import SettingsPage
from app.preferences.search import Entry
from app.preferences.search_box import SearchBox
from app.preferences.shortcuts_page import ShortcutsPage
from app.preferences.simple_pages import ChatsPage, DesktopPage
from app.presets.store import PresetStore
from app.settings import Option, SettingsStore
from app.shortcuts.shortcuts import Shortcuts
from app.theme import mark, theme
from app.widgets.buttons import push_button
from app.widgets.frames import scrolling, separator
from app.widgets.labels import hint
from app.widgets.laid_out import LaidOutDialog
from app.wizard.knowledge import RealKnowledge
from app.wizard.offers import Knowledge
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.params import GenerationParams
from engine.status import EngineStatus


class PreferencesDialog(LaidOutDialog):
    """All settings. `status` and `defaults` are those of the loaded model, None while none is loaded.

    Without `shortcuts`, where there is no main window, there is no page about them. `restart_requested`: the
    program is to be closed and started again.
    """

    restart_requested = Signal()

    def __init__(
        self,
        settings: SettingsStore,
        presets: PresetStore,
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
        knowledge = knowledge or RealKnowledge()
        self.model = ModelPage(settings, worker, knowledge, status)
        self.answers = AnswersPage(settings, presets, defaults)
        self.chats = ChatsPage(settings)
        self.appearance = AppearancePage(settings)
        self.shortcuts = ShortcutsPage(settings, shortcuts) if shortcuts is not None else None
        self.desktop = DesktopPage(settings)
        self.data = DataPage(settings, knowledge)
        self.data.restart_requested.connect(self.restart_requested)
        self.pages: tuple[SettingsPage, ...] = (
            self.model,
            self.answers,
            self.chats,
            self.appearance,
            *((self.shortcuts,) if self.shortcuts is not None else ()),
            self.desktop,
            self.data,
        )
        self._settings = settings
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Pages"))
        mark(self.list, pages=True)
        self.search = SearchBox(_entries(self.pages), self)
        self.search.searching.connect(self._on_searching)
        self.search.chosen.connect(self.show_entry)
        self.search.entered.connect(self.enter_entry)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self, self.search.field.setFocus)
        self._found: QWidget | None = None
        self.undo = UndoBar(self)
        mark(self.undo, shelf=True)
        self.reset_page = push_button(tr("&Reset this page"), self._reset_page, self)
        self.reset_page.setToolTip(tr("Gives every setting on this page its default again. Can be undone."))
        self._unsubscribe: Callable[[], None] | None = settings.subscribe(lambda *_: self._show_reset())
        self.stack = QStackedWidget(self)
        for page in self.pages:
            item = QListWidgetItem(page.name, self.list)
            item.setSizeHint(QSize(0, round(self.fontMetrics().height() * 2.1)))
            self.stack.addWidget(scrolling(page))
            page.trouble.connect(self._show_trouble)
            page.reset_requested.connect(self.reset)
        self.list.currentRowChanged.connect(self._turn)
        self.list.setCurrentRow(0)
        self.close_button = push_button(tr("Close"), self.accept, self)
        self.close_button.setDefault(True)
        self.finished.connect(self._on_finished)
        self._lay_out()
        self._set_least_size()
        theme().changed.connect(self._soon_set_least_size)
        unit, room = self.fontMetrics().height(), self.screen().availableSize()
        self.resize(min(unit * 60, room.width()), min(unit * 38, round(room.height() * 0.92)))
        self.list.setFocus()

    def _lay_out(self) -> None:
        side = self._side = QFrame(self)
        mark(side, surface=True)
        column = QVBoxLayout(side)
        column.setContentsMargins(12, 20, 12, 20)
        column.setSpacing(10)
        column.addWidget(self.search)
        column.addWidget(self.list, 1)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(28, 12, 28, 16)
        buttons.addWidget(hint(tr("Changes apply at once."), self), 1)
        buttons.setSpacing(8)
        buttons.addWidget(self.reset_page)
        buttons.addWidget(self.close_button)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.stack, 1)
        right.addWidget(self.undo)
        right.addWidget(separator(self))
        right.addLayout(buttons)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(side)
        layout.addLayout(right, 1)

    @Slot()
    def _soon_set_least_size(self) -> None:
        """A page has the present font only once it has been shown and laid out with it."""
        QTimer.singleShot(0, self, self._set_least_size)

    @Slot()
    def _set_least_size(self) -> None:
        """As narrow as the pages can be, in the present font and zoom, but never larger than the screen."""
        names = max(self.fontMetrics().horizontalAdvance(page.name) for page in self.pages)
        side = names + round(72 * theme().scale)
        self._side.setFixedWidth(side)
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        widest = side + bar + max(page.minimumSizeHint().width() for page in self.pages)
        room = self.screen().availableSize()
        low = self.fontMetrics().height() * 20
        self.setMinimumSize(min(widest, room.width()), min(low, room.height()))

    def show_page(self, page: SettingsPage) -> None:
        """Turn to `page`."""
        self.list.setCurrentRow(self.pages.index(page))

    @Slot(object)
    def show_entry(self, entry: Entry) -> None:
        """Turn to what a search has found and let it stand out."""
        page = self.pages[entry.page]
        place = page.places[entry.key]
        self.show_page(page)
        self._unmark()
        mark(place.part, found=True)
        self._found = place.part
        area = self.stack.currentWidget()
        if isinstance(area, QScrollArea):
            page.content.activate()  # a page that was never shown has no places yet
            area.ensureWidgetVisible(place.part, 0, self.fontMetrics().height())

    @Slot(object)
    def enter_entry(self, entry: Entry) -> None:
        """Also give it the keyboard."""
        self.show_entry(entry)
        self.pages[entry.page].places[entry.key].focus.setFocus()

    @Slot(object)
    def reset(self, options: tuple[Option[Any], ...]) -> None:
        """Give options their defaults again; what they were can be had back for a while."""
        before = {option.key: self._settings[option.key] for option in options}
        changed = [option for option in options if before[option.key] != option.default]
        if not changed:
            return
        self._change(lambda: self._settings.reset(*options))
        if len(changed) == 1:
            text = tr("“{label}” has its default again.", label=changed[0].label)
        else:
            text = tr("{count} settings have their defaults again.", count=len(changed))
        self.undo.offer(text, lambda: self._change(lambda: self._settings.update(before)))

    def _change(self, change: Callable[[], None]) -> None:
        try:
            change()
        except EngineError as error:
            self._show_trouble(error)

    @Slot(object)
    def _show_trouble(self, error: EngineError) -> None:
        show_error(self, error)

    @Slot()
    def _reset_page(self) -> None:
        self.reset(self.pages[self.list.currentRow()].options)

    @Slot(int)
    def _turn(self, row: int) -> None:
        self._unmark()
        self.stack.setCurrentIndex(row)
        self._show_reset()
        self._soon_set_least_size()

    def _show_reset(self) -> None:
        options = self.pages[self.list.currentRow()].options
        self.reset_page.setVisible(bool(options))
        self.reset_page.setEnabled(any(self._settings[option.key] != option.default for option in options))

    @Slot(bool)
    def _on_searching(self, searching: bool) -> None:
        self.list.setVisible(not searching)
        self._unmark()

    def _unmark(self) -> None:
        if self._found is not None:
            mark(self._found, found=False)
            self._found = None

    def _on_finished(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for page in self.pages:
            page.close_page()


def _entries(pages: tuple[SettingsPage, ...]) -> list[Entry]:
    """Everything on the pages that a search can find."""
    return [
        Entry(number, page.name, key, place.label, place.help, place.synonyms)
        for number, page in enumerate(pages)
        for key, place in page.places.items()
    ]
