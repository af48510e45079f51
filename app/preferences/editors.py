"""The widget that fits a setting's type, bound to the store and checked while typing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)

from app.i18n import tr
from app.preferences.binding import Binding

Choices = Sequence[tuple[str, str]]

TYPING_PAUSE_MS = 400  # a text is saved when nothing was typed for so long
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
        large = option.maximum is not None and option.maximum > _INT_LIMIT
        editor = _number_line(binding, parent, automatic) if large else _spin(binding, parent, automatic)
    elif isinstance(option.default, float):
        editor = _double(binding, parent, automatic)
    else:
        editor = _text(binding, parent)
    editor.setAccessibleName(option.label)
    editor.setAccessibleDescription(option.help)
    return editor


class _WheelGuard(QObject):
    """Lets a wheel over an editor scroll the page, unless the editor has the keyboard's focus."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hold wheel events back from an editor that is only passed over."""
        if event.type() is QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)


def _guard(widget: QWidget) -> None:
    widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    widget.installEventFilter(_WheelGuard(widget))


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
    _guard(box)
    return box


def _spin(binding: Binding, parent: QWidget, automatic: str) -> QSpinBox:
    option = binding.option
    box = QSpinBox(parent)
    box.setRange(int(option.minimum or 0), int(option.maximum or _INT_LIMIT))
    box.setSpecialValueText(automatic)
    box.setKeyboardTracking(False)

    def show(value: int) -> None:
        with QSignalBlocker(box):
            box.setValue(value)

    binding.show_value = show
    show(binding.value)
    box.valueChanged.connect(binding.save)
    _guard(box)
    return box


def _double(binding: Binding, parent: QWidget, automatic: str) -> QDoubleSpinBox:
    option = binding.option
    box = QDoubleSpinBox(parent)
    box.setDecimals(2)
    box.setRange(float(option.minimum or 0), float(option.maximum or _INT_LIMIT))
    box.setSingleStep(0.05 if (option.maximum or 0) <= 10 else 0.5)
    box.setSpecialValueText(automatic)
    box.setKeyboardTracking(False)

    def show(value: float) -> None:
        with QSignalBlocker(box):
            box.setValue(value)

    binding.show_value = show
    show(binding.value)
    box.valueChanged.connect(lambda value: binding.save(round(value, 2)))
    _guard(box)
    return box


def _number_line(binding: Binding, parent: QWidget, automatic: str) -> QLineEdit:
    """A whole number that QSpinBox has no room for; empty is the lowest value."""
    line = QLineEdit(parent)
    line.setPlaceholderText(automatic)
    lowest = int(binding.option.minimum or 0)

    def show(value: int) -> None:
        text = "" if value == lowest else str(value)
        if line.text().strip() not in (text, str(value)):
            line.setText(text)

    @Slot()
    def save() -> None:
        text = line.text().strip()
        digits = text.removeprefix("-")
        if not text:
            binding.save(lowest)
        elif digits.isascii() and digits.isdigit() and len(digits) < 30:
            binding.save(int(text))
        else:
            binding.invalid.emit(tr("Choose {allowed}.", allowed=binding.option.allowed))

    binding.show_value = show
    show(binding.value)
    line.textEdited.connect(save)
    return line


def _text(binding: Binding, parent: QWidget) -> QPlainTextEdit:
    """A longer text, saved when typing pauses and when the dialog is closed."""
    edit = QPlainTextEdit(parent)
    edit.setTabChangesFocus(True)
    timer = QTimer(edit)
    timer.setSingleShot(True)
    timer.setInterval(TYPING_PAUSE_MS)

    def show(value: str) -> None:
        if edit.toPlainText() != value:
            with QSignalBlocker(edit):
                edit.setPlainText(value)

    @Slot()
    def save() -> None:
        timer.stop()
        binding.save(edit.toPlainText())

    def flush() -> None:
        if timer.isActive():
            save()

    binding.show_value = show
    show(binding.value)
    edit.textChanged.connect(timer.start)
    timer.timeout.connect(save)
    binding.flush = flush
    return edit
