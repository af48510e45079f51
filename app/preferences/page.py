"""What the pages of the settings have in common: rows of label, editor and consequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.preferences.binding import Binding
from app.preferences.editors import Choices, make_editor
from app.settings import Option, SettingsStore
from app.theme import mark, theme
from app.widgets.labels import TextLabel, hint, title

_MARK_WIDTH = 26  # pixels of a check box before its words; the style sheet's sizes


class SettingsPage(QWidget):
    """One page. `trouble` carries an EngineError that is to be shown."""

    trouble = Signal(object)

    def __init__(self, name: str, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.settings = settings
        self.bindings: dict[str, Binding] = {}
        self.editors: dict[str, QWidget] = {}
        self.complaints: dict[str, QLabel] = {}
        self.helps: dict[str, QLabel] = {}
        self.setAccessibleName(name)
        self.content = QVBoxLayout(self)
        self.content.setContentsMargins(28, 24, 28, 20)
        self.content.setSpacing(14)
        self.content.addWidget(title(name, self))
        self._grid: QGridLayout | None = None
        self._unsubscribers: list[Callable[[], None]] = []

    def add_option(
        self, option: Option[Any], *, automatic: str = "", choices: Choices | None = None
    ) -> QWidget:
        """Add a row for `option` at the end of the page and return its editor; see `make_editor`."""
        binding = Binding(self.settings, option, self)
        editor = make_editor(binding, self, automatic, choices)
        complaint = TextLabel(parent=self)
        mark(complaint, tone="error")
        complaint.hide()
        self.bindings[option.key], self.editors[option.key] = binding, editor
        self.complaints[option.key] = complaint
        binding.trouble.connect(self.trouble)

        def complain(text: str) -> None:
            complaint.setText(text)
            complaint.setVisible(bool(text))

        binding.invalid.connect(complain)
        column = QVBoxLayout()
        column.setSpacing(3)
        if isinstance(editor, QCheckBox | QPlainTextEdit):
            column.addWidget(editor)
        else:
            editor.setMinimumWidth(self.fontMetrics().averageCharWidth() * 26)
            editor.setMinimumHeight(round(self.fontMetrics().height() * 1.7))
            column.addWidget(editor, 0, Qt.AlignmentFlag.AlignLeft)
        if isinstance(editor, QCheckBox):
            column.setAlignment(editor, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(complaint)
        explanation = self.helps[option.key] = hint(option.help, self)
        if isinstance(editor, QCheckBox):  # in line with its words
            explanation.setContentsMargins(round(_MARK_WIDTH * theme().scale), 0, 0, 0)
        column.addWidget(explanation)
        self._add_row(option, editor, column)
        return editor

    def follow_settings(self, look: Callable[[], None]) -> None:
        """Call `look` after every change of a setting, until the page is closed."""
        self._unsubscribers.append(self.settings.subscribe(lambda *_: look()))

    def close_page(self) -> None:
        """The dialog is being closed: save what is pending, let go of the settings. May be called again."""
        for binding in self.bindings.values():
            binding.release()
        while self._unsubscribers:
            self._unsubscribers.pop()()

    def _add_row(self, option: Option[Any], editor: QWidget, column: QVBoxLayout) -> None:
        if isinstance(editor, QPlainTextEdit):
            self.content.addLayout(column, 1)
            self._grid = None
            return
        grid = self._grid = self._grid or self._new_grid()
        row = grid.rowCount()
        if isinstance(editor, QCheckBox):
            grid.addLayout(column, row, 0, 1, 2)
            return
        label = QLabel(option.label, self)
        label.setBuddy(editor)
        label.setWordWrap(True)
        label.setContentsMargins(0, 6, 0, 0)
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        grid.addLayout(column, row, 1)

    def _new_grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(14)
        grid.setColumnMinimumWidth(0, self.fontMetrics().averageCharWidth() * 24)
        grid.setColumnStretch(1, 1)
        self.content.addLayout(grid)
        return grid

    def end_group(self) -> None:
        """The next option begins a new block of rows."""
        self._grid = None
