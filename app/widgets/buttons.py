"""Push buttons as pages need them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton, QWidget

from app.theme import mark


def push_button(
    text: str, on_click: Callable[[], object], parent: QWidget | None = None, *, primary: bool = False
) -> QPushButton:
    """A button that calls `on_click`. Enter presses the focused primary button, Space any focused one.

    In a dialog, Enter anywhere else presses the dialog's default button.
    """
    button = QPushButton(text, parent)
    button.setAutoDefault(primary)
    if primary:
        mark(button, primary=True)
    button.clicked.connect(lambda: on_click())
    return button
