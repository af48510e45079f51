"""What an empty chat shows, also where there is little room."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFont
from pytestqt.qtbot import QtBot

from app.chat.welcome import SUGGESTIONS, Welcome
from app.widgets.wrapping_button import wrapped


@pytest.mark.parametrize("width", [280, 360, 900])
def test_suggestions_take_several_lines_where_the_page_is_narrow(qtbot: QtBot, width: int) -> None:
    welcome = Welcome()
    qtbot.addWidget(welcome)
    welcome.resize(900, 500)
    welcome.show()
    welcome.resize(width, 500)
    longest = welcome.buttons[1]
    qtbot.waitUntil(lambda: longest.height() >= longest.sizeHint().height())
    assert welcome.horizontalScrollBar().maximum() == 0
    assert ("\n" in longest.text()) == (width < 400)
    assert longest.accessibleName() == SUGGESTIONS[1]
    with qtbot.waitSignal(welcome.suggested, check_params_cb=lambda text: text == SUGGESTIONS[1]):
        longest.click()


def test_lines_break_between_words_and_lose_none(qtbot: QtBot) -> None:
    text = "Explain in two sentences what a computer does."
    lines = wrapped(text, QFont(), 120).splitlines()
    assert len(lines) > 1
    assert " ".join(lines) == text
    assert wrapped(text, QFont(), 5000) == text
