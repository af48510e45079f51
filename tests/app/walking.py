"""A walk through a window by the keyboard and with a screen reader's eyes, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QMainWindow,
    QMenu,
    QScrollArea,
    QScrollBar,
    QTextEdit,
    QWidget,
)

from app.focus import focus_order

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

_CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QTextEdit,
)
_NO_ROLES = (QAccessible.Role.NoRole, QAccessible.Role.Client)


def describe(widget: QWidget) -> str:
    """Which widget it is, for a message."""
    text = getattr(widget, "text", None)
    words = text() if callable(text) and not isinstance(widget, QAbstractSpinBox) else ""
    chain = type(widget.parentWidget()).__name__ if widget.parentWidget() else "-"
    return f"{type(widget).__name__} “{widget.accessibleName() or words}” in {chain}"


def is_stop(widget: QWidget) -> bool:
    """Whether Tab is to reach it."""
    return (
        widget.isVisible()
        and widget.isEnabled()
        and bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
        and widget.focusProxy() is None
    )


def stops(root: QWidget) -> list[QWidget]:
    """Everything that Tab must reach in a window; what is in another window of its own is not part of it."""
    return [
        widget
        for widget in root.findChildren(QWidget)
        if widget.window() is root.window() and is_stop(widget)
    ]


def _is_part_of_a_control(widget: QWidget) -> bool:
    """Whether it belongs to a control of Qt that has a name of its own, as a list in a combo box does."""
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, _CONTROLS):
            return True
        parent = parent.parentWidget()
    return False


def faults(root: QWidget) -> list[str]:
    """What a screen reader could not name or tell the kind of, and what only a mouse reaches."""
    found = []
    for widget in root.findChildren(QWidget):
        if widget.window() is not root.window() or not widget.isVisible() or not widget.isEnabled():
            continue
        stop = is_stop(widget)
        control = isinstance(widget, _CONTROLS) and not isinstance(widget, QScrollBar)
        if not stop and (not control or _is_part_of_a_control(widget)):
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        if interface is None:
            found.append(f"not accessible: {describe(widget)}")
            continue
        if not interface.text(QAccessible.Text.Name).strip():
            found.append(f"without a name: {describe(widget)}")
        if interface.role() in _NO_ROLES and not isinstance(widget, QAbstractScrollArea):
            found.append(f"without a role: {describe(widget)}")
        clickable = isinstance(widget, QAbstractButton) and not widget.testAttribute(
            Qt.WidgetAttribute.WA_TransparentForMouseEvents
        )
        if clickable and widget.focusPolicy() is Qt.FocusPolicy.NoFocus:
            found.append(f"only for a mouse: {describe(widget)}")
    return found


def tab_through(root: QWidget, key: Qt.Key = Qt.Key.Key_Tab) -> list[QWidget]:
    """Press Tab until it comes back to the first stop; the stops in the order in which they were reached."""
    wanted = stops(root)
    if not wanted:
        return []
    focused = QApplication.focusWidget()
    first = focused if focused in wanted else wanted[0]
    first.setFocus(Qt.FocusReason.TabFocusReason)
    visited = [first]
    for _ in range(4 * len(wanted) + 8):
        current = QApplication.focusWidget()
        assert current is not None, f"the focus is lost after {describe(visited[-1])}"
        QTest.keyClick(current, key)
        now = QApplication.focusWidget()
        if now is first and current is not first:
            return visited
        if now is not None and now not in visited:
            visited.append(now)
    if len(wanted) == 1:
        return visited
    raise AssertionError(f"Tab does not come back to {describe(first)}; it stays at {describe(visited[-1])}")


def unreached(root: QWidget, visited: list[QWidget]) -> list[str]:
    """Stops that Tab did not reach; of radio buttons it reaches the chosen one, arrows lead to the others."""
    return [
        describe(widget)
        for widget in stops(root)
        if widget not in visited
        and not (isinstance(widget, QAbstractButton) and widget.autoExclusive() and not widget.isChecked())
        and not (
            isinstance(widget, QAbstractButton) and widget.group() is not None and not widget.isChecked()
        )
    ]


def out_of_order(root: QWidget, visited: list[QWidget]) -> list[str]:
    """Where Tab leads upwards to something that stands right above, within one part that scrolls."""
    laid_out = [widget for widget in focus_order(root) if widget in visited]
    start = visited.index(laid_out[0]) if laid_out else 0
    found = []
    for before, after in pairwise(visited[start:] + visited[:start]):
        one, other = (QRect(widget.mapTo(root, QPoint()), widget.size()) for widget in (before, after))
        beside = one.right() < other.left() or other.right() < one.left()
        if _scrolled_in(before) is _scrolled_in(after) and other.bottom() <= one.top() and not beside:
            found.append(f"{describe(before)} leads up to {describe(after)}")
    return found


def _scrolled_in(widget: QWidget) -> QWidget | None:
    parent = widget.parentWidget()
    while parent is not None and not isinstance(parent, QScrollArea):
        parent = parent.parentWidget()
    return parent


def look_through(qtbot: QtBot, root: QWidget) -> list[str]:
    """Everything that is wrong with a window for people without a mouse or without sight."""
    window = root.window()
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window, timeout=5000)
    found = faults(root)
    visited = tab_through(root)
    found += [f"Tab never reaches {text}" for text in unreached(root, visited)]
    found += out_of_order(root, visited)
    if root.isWindow() and not (window.accessibleName() or window.windowTitle()):
        found.append(f"a window without a title: {type(window).__name__}")
    return found


class StrayWindows(QObject):
    """Notes what becomes a window of its own without being meant to, and takes the keyboard away."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            meant = isinstance(watched, QMainWindow | QDialog | QMenu)
            if not meant and watched.windowType() is Qt.WindowType.Window:
                self.found.append(describe(watched))
        return False


@pytest.fixture(autouse=True)
def stray_windows(qapp: QApplication) -> Iterator[None]:
    """For every test of a file that imports it: nothing flashes up."""
    stray = StrayWindows()
    qapp.installEventFilter(stray)
    yield
    qapp.removeEventFilter(stray)
    assert stray.found == []
