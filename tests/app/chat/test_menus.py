from __future__ import annotations

import pytest

from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


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
