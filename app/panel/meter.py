"""An amount of a whole: its name, the figures, a bar below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.panel.bars import Part, StackedBar
from app.theme import mark


class Meter(QWidget):
    """Name on the left, figures on the right; either takes a second line where the panel is narrow."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name, self._value = QLabel(name), QLabel()
        mark(self._value, muted=True)
        self._bar = StackedBar()
        line = QGridLayout()
        line.setColumnStretch(0, 1)
        line.setColumnStretch(1, 1)
        line.addWidget(self._name, 0, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(self._value, 0, 1, Qt.AlignmentFlag.AlignTop)
        for label in (self._name, self._value):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._value.setAlignment(Qt.AlignmentFlag.AlignRight)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(line)
        column.addWidget(self._bar)

    @property
    def text(self) -> str:
        """The figures in words."""
        return self._value.text()

    def show_amount(self, text: str, parts: Sequence[Part], tip: str = "") -> None:
        """Show figures and the bar's parts; without parts there is no bar."""
        self._value.setText(text)
        if self._bar.isHidden() is bool(parts):
            self._bar.setVisible(bool(parts))
        self._bar.set_parts(parts)
        self._bar.setAccessibleName(f"{self._name.text()}: {text}")
        self.setToolTip(tip)
