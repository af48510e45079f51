"""What the pages of the settings have in common: rows of label, editor and consequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.preferences.editors import Choices
from app.preferences.row import OptionRow
from app.settings import Option, SettingsStore
from app.widgets.labels import hint, title

_INDENT = 10  # pixels: the rows' frame and margin


@dataclass(frozen=True)
class Place:
    """What a search can lead to on a page: its words, the part that stands out, what gets the focus."""

    label: str
    help: str
    synonyms: str
    part: QWidget
    focus: QWidget


class SettingsPage(QWidget):
    """One page. `trouble` carries an EngineError that is to be shown."""

    trouble = Signal(object)
    reset_requested = Signal(object)  # tuple of options

    def __init__(self, name: str, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.settings = settings
        self.rows: dict[str, OptionRow] = {}
        self.places: dict[str, Place] = {}
        self.setAccessibleName(name)
        self.content = QVBoxLayout(self)
        self.content.setContentsMargins(20, 24, 28, 20)
        self.content.setSpacing(4)
        heading = title(name, self)
        heading.setContentsMargins(_INDENT, 0, 0, 8)
        self.content.addWidget(heading)
        self._unsubscribers: list[Callable[[], object]] = []

    @property
    def editors(self) -> dict[str, QWidget]:
        """The widget that changes each setting, by key."""
        return {key: row.editor for key, row in self.rows.items()}

    @property
    def complaints(self) -> dict[str, QLabel]:
        """What is wrong with the value that is typed for each setting, by key."""
        return {key: row.complaint for key, row in self.rows.items()}

    @property
    def helps(self) -> dict[str, QLabel]:
        """The consequence of each setting, by key."""
        return {key: row.help for key, row in self.rows.items()}

    @property
    def options(self) -> tuple[Option[Any], ...]:
        """The options on this page."""
        return tuple(row.option for row in self.rows.values())

    def add_option(
        self, option: Option[Any], *, automatic: str = "", choices: Choices | None = None
    ) -> QWidget:
        """Add a row for `option` at the end of the page and return its editor; see `make_editor`."""
        row = OptionRow(self.settings, option, self, automatic=automatic, choices=choices)
        row.binding.trouble.connect(self.trouble)
        row.reset_requested.connect(lambda option: self.reset_requested.emit((option,)))
        self.rows[option.key] = row
        self.places[option.key] = Place(option.label, option.help, option.synonyms, row, row.editor)
        self.content.addWidget(row)
        return row.editor

    def add_hint(self, text: str) -> QLabel:
        """Add an explanation at the end of the page, in line with the rows."""
        label = hint(text, self)
        label.setContentsMargins(_INDENT, 2, 0, 6)
        self.content.addWidget(label)
        return label

    def add_place(self, key: str, label: str, words: str, part: QWidget, focus: QWidget) -> None:
        """Let a search find `part`, which is no option's row, by its label and by other `words` for it."""
        self.places[key] = Place(label, "", words, part, focus)

    def follow_settings(self, look: Callable[[], None]) -> None:
        """Call `look` after every change of a setting, until the page is closed."""
        self._unsubscribers.append(self.settings.subscribe(lambda *_: look()))

    def close_page(self) -> None:
        """The dialog is being closed: let go of the settings. May be called again."""
        for row in self.rows.values():
            row.binding.release()
        while self._unsubscribers:
            self._unsubscribers.pop()()
