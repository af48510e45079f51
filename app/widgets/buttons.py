"""Buttons as pages need them, and menus below them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QWidget

from app.theme import mark, theme

# Pixels of a check box or radio button before its words at a zoom of 100 %, as in the style sheet.
MARK_WIDTH = 28


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


def pop_up_below(button: QWidget, menu: QMenu) -> None:
    """Show a menu at the lower edge of a button; it is gone when it is closed."""
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(button.mapToGlobal(QPoint(0, button.height())))


def icon_button(
    icon: str, name: str, on_click: Callable[[], object], parent: QWidget | None = None
) -> QToolButton:
    """A button with a picture alone; `name` is its tool tip and what a screen reader says."""
    button = QToolButton(parent)
    button.setToolTip(name)
    button.setAccessibleName(name)
    theme().set_icon(button, icon, "muted")
    button.clicked.connect(lambda: on_click())
    return button
