"""The offer to take something back: it is said, it goes after a while, but not while it has the keyboard."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.undo_bar import UndoBar

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark


@pytest.fixture
def bar(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> UndoBar:
    monkeypatch.setattr("app.chat.undo_bar.UNDO_MS", 30)
    made = UndoBar()
    qtbot.addWidget(made)
    return made


def test_it_is_said_and_takes_back_once(bar: UndoBar, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("app.chat.undo_bar.announce", lambda _owner, text: said.append(text))
    taken: list[int] = []
    bar.offer("Deleted “Rome”", lambda: taken.append(1))
    assert said == ["Deleted “Rome”"]
    bar.button.click()
    assert taken == [1]
    assert bar.isHidden()


def test_it_goes_after_a_while_but_not_while_it_has_the_keyboard(qtbot: QtBot, bar: UndoBar) -> None:
    bar.offer("Deleted “Rome”", lambda: None)
    bar.activateWindow()
    bar.button.setFocus()
    qtbot.wait(100)
    assert bar.isVisible()
    bar.button.clearFocus()
    qtbot.waitUntil(bar.isHidden, timeout=5000)
