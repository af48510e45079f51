from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment, compose
from app.window import MainWindow
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def reachable(window: MainWindow) -> list[QWidget]:
    """What Tab must reach: everything on the screen that takes the keyboard, once."""
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.isVisible()
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
    ]


def talk(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    factory.script = ["Text with a [link](https://example.org).\n\n```python\nx = 1\n```\n"]
    window.session.send("Hello")
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() == 1, timeout=5000)


def fill_composer(window: MainWindow) -> None:
    """Let everything stand in the composer that there can be."""
    composer = window.page.composer
    composer.set_content(compose([Attachment("note.txt", "x"), Attachment("table.csv", "1,2")], "What?"))
    composer.show_waiting("And then?")
    composer.refuse("Too long.")
    composer.edit.insertPlainText("x" * 5000)
    pasted = composer.edit.textCursor()
    pasted.select(pasted.SelectionType.Document)
    composer.offer.offer(pasted)


def test_everything_that_takes_the_keyboard_has_a_name(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    def nameless() -> list[QWidget]:
        found = []
        for widget in reachable(window):
            interface = QAccessible.queryAccessibleInterface(widget)
            if interface is None or not interface.text(QAccessible.Text.Name).strip():
                found.append(widget)
        return found

    assert nameless() == []  # the empty chat
    talk(qtbot, window, factory)
    assert nameless() == []
    fill_composer(window)
    assert nameless() == []


def test_tab_reaches_everything_from_left_to_right_and_comes_back(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    talk(qtbot, window, factory)
    fill_composer(window)
    window.activateWindow()
    window.sidebar.new_button.setFocus()
    wanted = set(reachable(window))
    visited: list[QWidget] = []
    for _ in range(3 * len(wanted)):
        focused = QApplication.focusWidget()
        assert focused is not None
        if visited and focused is visited[0]:
            break
        if focused not in visited:  # a text with a link takes two steps
            visited.append(focused)
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is visited[0]
    assert wanted - set(visited) == set()
    parts = [window.sidebar, window.page, window.panel]
    order = [next(n for n, part in enumerate(parts) if part.isAncestorOf(widget)) for widget in visited]
    assert order == sorted(order)


def test_every_command_is_in_a_menu_with_a_letter(window: MainWindow) -> None:
    for action in window.menus.actions.values():
        assert "&" in action.text()
    for menu in window.menuBar().actions():
        letters = []
        for action in menu.menu().actions():  # type: ignore[union-attr]
            if not action.isSeparator():
                text = action.text()
                letters.append(text[text.index("&") + 1].lower())
        assert len(letters) == len(set(letters)), f"{menu.text()}: {letters}"
    keys = [
        action.shortcut().toString()
        for action in window.menus.actions.values()
        if not action.shortcut().isEmpty()
    ]
    assert len(keys) == len(set(keys))
