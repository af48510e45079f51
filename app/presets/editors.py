"""Editors of single parameters: numbers that may be left to the model, a seed, a choice."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QFocusEvent, QValidator
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QWidget

from app.i18n import tr
from app.settings.option import Option, SettingsError
from app.widgets.inset import inset
from app.widgets.wheel import guard_wheel


class NumberEdit(QDoubleSpinBox):
    """A number in an option's range. Where `optional`, nothing typed, or a step below the lowest, is None."""

    edited = Signal()

    def __init__(self, option: Option[Any], parent: QWidget, *, optional: bool) -> None:
        super().__init__(parent)
        whole = isinstance(option.default, int)
        self._whole, self._optional = whole, optional
        self._lowest = float(option.minimum or 0)
        self.setDecimals(0 if whole else 2)
        self.setSingleStep(1 if whole else 0.05)
        self.setRange(
            self._lowest - (self.singleStep() if optional else 0), float(option.maximum or math.inf)
        )
        self.setKeyboardTracking(True)
        self.setAccessibleName(option.label)
        self.setAccessibleDescription(option.help)
        self.valueChanged.connect(lambda _: self.edited.emit())
        guard_wheel(self)
        inset(self)

    def set_own(self, words: str) -> None:
        """How None is shown: whose value applies then."""
        self.setSpecialValueText(words)

    @property
    def number(self) -> float | int | None:
        """The value; None if it is left to the model."""
        value = round(self.value(), 2)
        if self._optional and value < self._lowest:
            return None
        return int(value) if self._whole else value

    def show_number(self, value: float | int | None) -> None:
        """Show a value."""
        self.setValue(self.minimum() if value is None else value)

    def validate(self, text: str, place: int) -> tuple[QValidator.State, str, int]:
        """Also take an empty field, as None."""
        if self._optional and not text.strip():
            return QValidator.State.Acceptable, text, place
        return super().validate(text, place)

    def valueFromText(self, text: str) -> float:
        """An empty field is None, which is the minimum."""
        return self.minimum() if self._optional and not text.strip() else super().valueFromText(text)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What is typed replaces the words for None, also after a click into them."""
        super().focusInEvent(event)
        QTimer.singleShot(0, self, self.selectAll)


class SeedEdit(QLineEdit):
    """A whole number of up to 63 bits; empty is None. `complaint` says what is wrong with the text."""

    edited = Signal()

    def __init__(self, option: Option[Any], parent: QWidget) -> None:
        super().__init__(parent)
        self._option = option
        self.complaint = ""
        self.setPlaceholderText(tr("A new one for each answer"))
        self.setAccessibleName(option.label)
        self.setAccessibleDescription(option.help)
        self.textEdited.connect(self._on_edited)

    @property
    def number(self) -> int | None:
        """The seed; None where none, or an impossible one, is typed."""
        text = self.text().strip()
        return int(text) if text and not self._fault(text) else None

    def show_number(self, value: int | None) -> None:
        """Show a seed."""
        text = "" if value is None else str(value)
        if self.text().strip() != text:
            self.setText(text)
        self.complaint = ""

    def _on_edited(self) -> None:
        text = self.text().strip()
        self.complaint = self._fault(text) if text else ""
        self.edited.emit()

    def _fault(self, text: str) -> str:
        digits = text.isascii() and text.isdigit() and len(text) < 30
        try:
            self._option.check(int(text) if digits else text)
        except SettingsError as error:
            return str(error)
        return ""


class ChoiceEdit(QComboBox):
    """One of an option's choices."""

    edited = Signal()

    def __init__(self, option: Option[Any], parent: QWidget) -> None:
        super().__init__(parent)
        for choice in option.choices:
            self.addItem(choice.label, choice.value)
        self.setAccessibleName(option.label)
        self.setAccessibleDescription(option.help)
        self.currentIndexChanged.connect(lambda _: self.edited.emit())
        guard_wheel(self)

    @property
    def chosen(self) -> str:
        """The value that is chosen."""
        return str(self.currentData())

    def show_choice(self, value: str) -> None:
        """Show a value."""
        self.setCurrentIndex(self.findData(value))
