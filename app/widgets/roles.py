"""What kind of thing a painted widget is, for screen readers: Qt takes it for a mere container otherwise."""

from __future__ import annotations

import weakref
from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

_roles: weakref.WeakKeyDictionary[QObject, QAccessible.Role] = weakref.WeakKeyDictionary()


def set_role(widget: QWidget, role: QAccessible.Role) -> None:
    """Have screen readers told that `widget` is a chart, or whatever it is. To be called as it is made."""
    _install()
    _roles[widget] = role


@cache
def _install() -> None:
    """Qt keeps a factory as often as it is installed, and asks each."""
    QAccessible.installFactory(_interface)


def _interface(_kind: str, thing: QObject) -> QAccessibleInterface | None:
    role = _roles.get(thing)
    if role is None or not isinstance(thing, QWidget):
        return None  # Qt's own answer is right
    return QAccessibleWidget(thing, role)
