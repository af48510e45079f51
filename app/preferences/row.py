"""One setting on a page: its label, its editor, a button that resets it, and what it means."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.preferences.binding import Binding
from app.preferences.editors import Choices, make_editor
from app.settings import Option, SettingsStore
from app.theme import mark, theme
from app.widgets.buttons import MARK_WIDTH, icon_button
from app.widgets.folding import FoldingLayout
from app.widgets.labels import TextLabel, hint

_LABEL_IN_CHARACTERS = 24


class OptionRow(QFrame):
    """The row of one option. `reset_requested`: the button was pressed that gives it its default again."""

    reset_requested = Signal(object)  # Option

    def __init__(
        self,
        settings: SettingsStore,
        option: Option[Any],
        parent: QWidget,
        *,
        automatic: str = "",
        choices: Choices | None = None,
    ) -> None:
        super().__init__(parent)
        self.option = option
        mark(self, option=True, found=False)
        self.binding = Binding(settings, option, self)
        self.editor = make_editor(self.binding, self, automatic, choices)
        self.complaint = TextLabel(parent=self)
        mark(self.complaint, tone="error")
        self.complaint.hide()
        self.binding.invalid.connect(self._complain)
        self.help = hint(option.help, self)
        self.reset = icon_button("reset", tr("Reset “{label}”", label=option.label), self._ask_reset, self)
        mark(self.reset, small=True)
        self._keep_its_place(self.reset)
        self.binding.changed.connect(self._show_reset)
        self._show_reset()
        self._lay_out()

    def _lay_out(self) -> None:
        right = QWidget(self)
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        line = QHBoxLayout()
        line.setSpacing(4)
        line.addWidget(self.editor)
        line.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignTop)
        line.addStretch(1)
        column.addLayout(line)
        column.addWidget(self.complaint)
        column.addWidget(self.help)
        characters = self.fontMetrics().averageCharWidth()
        layout = FoldingLayout(self, lead=characters * _LABEL_IN_CHARACTERS)
        layout.setContentsMargins(8, 6, 8, 6)
        if isinstance(self.editor, QCheckBox):  # the explanation in line with its words
            self.help.setContentsMargins(round(MARK_WIDTH * theme().scale), 0, 0, 0)
        else:
            self.editor.setMinimumWidth(characters * 26)
            self.editor.setMinimumHeight(round(self.fontMetrics().height() * 1.7))
            label = QLabel(self.option.label, self)
            label.setBuddy(self.editor)
            label.setWordWrap(True)
            label.setContentsMargins(0, 6, 0, 0)
            layout.addWidget(label)
        layout.addWidget(right)

    @staticmethod
    def _keep_its_place(button: QWidget) -> None:
        """Nothing moves when the button comes and goes."""
        policy = button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        button.setSizePolicy(policy)

    def _show_reset(self) -> None:
        if self.reset.hasFocus() and self.binding.value == self.option.default:
            self.editor.setFocus()  # the button goes; the keyboard's place must not be lost
        self.reset.setVisible(self.binding.value != self.option.default)

    def _ask_reset(self) -> None:
        self.reset_requested.emit(self.option)

    def _complain(self, text: str) -> None:
        self.complaint.setText(text)
        self.complaint.setVisible(bool(text))
