"""The widget that fits a setting's type, bound to the store and checked while typing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QSpinBox,
    QWidget,
)

from app.i18n import tr
from app.preferences.binding import Binding
from app.widgets.inset import inset
from app.widgets.wheel import guard_wheel

Choices = Sequence[tuple[str, str]]

_INT_LIMIT = 2**31 - 1  # of QSpinBox


def make_editor(
    binding: Binding, parent: QWidget, automatic: str = "", choices: Choices | None = None
) -> QWidget:
    """The editor of a setting; `automatic` are the words for a number's lowest value.

    `choices` are values with their words, for a text that is chosen from what this computer has.
    """
    option = binding.option
    if choices is None and option.choices:
        choices = [(choice.value, choice.label) for choice in option.choices]
    if choices is not None:
        editor: QWidget = _choice(binding, parent, choices)
    elif isinstance(option.default, bool):
        editor = _check(binding, parent)
    elif isinstance(option.default, int):
        editor = _spin(binding, parent, automatic)
    elif isinstance(option.default, float):
        editor = _double(binding, parent, automatic)
    else:
        raise TypeError(f"{option.key}: no editor fits a text that is not chosen from a list")
    editor.setAccessibleName(option.label)
    editor.setAccessibleDescription(option.help)
    return editor


def _check(binding: Binding, parent: QWidget) -> QCheckBox:
    box = QCheckBox(binding.option.label, parent)

    def show(value: bool) -> None:
        with QSignalBlocker(box):
            box.setChecked(value)

    binding.show_value = show
    show(binding.value)
    box.toggled.connect(binding.save)
    return box


def _choice(binding: Binding, parent: QWidget, choices: Choices) -> QComboBox:
    box = QComboBox(parent)
    for value, label in choices:
        box.addItem(label, value)

    def show(value: str) -> None:
        with QSignalBlocker(box):
            if box.findData(value) < 0:  # a font or a language that was there when it was chosen
                box.addItem(tr("{name} (not found)", name=value), value)
            box.setCurrentIndex(box.findData(value))

    binding.show_value = show
    show(binding.value)
    box.currentIndexChanged.connect(lambda index: binding.save(box.itemData(index)))
    guard_wheel(box)
    return box


def _spin(binding: Binding, parent: QWidget, automatic: str) -> QSpinBox:
    option = binding.option
    box = QSpinBox(parent)
    box.setRange(int(option.minimum or 0), int(option.maximum or _INT_LIMIT))
    box.setSpecialValueText(automatic)
    inset(box)
    box.setKeyboardTracking(False)

    def show(value: int) -> None:
        with QSignalBlocker(box):
            box.setValue(value)

    binding.show_value = show
    show(binding.value)
    box.valueChanged.connect(binding.save)
    guard_wheel(box)
    return box


def _double(binding: Binding, parent: QWidget, automatic: str) -> QDoubleSpinBox:
    option = binding.option
    box = QDoubleSpinBox(parent)
    box.setDecimals(2)
    box.setRange(float(option.minimum or 0), float(option.maximum or _INT_LIMIT))
    box.setSingleStep(0.05 if (option.maximum or 0) <= 10 else 0.5)
    box.setSpecialValueText(automatic)
    inset(box)
    box.setKeyboardTracking(False)

    def show(value: float) -> None:
        with QSignalBlocker(box):
            box.setValue(value)

    binding.show_value = show
    show(binding.value)
    box.valueChanged.connect(lambda value: binding.save(round(value, 2)))
    guard_wheel(box)
    return box
