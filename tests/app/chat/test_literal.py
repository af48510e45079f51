"""What people and models write is shown as it is, also where Qt would find markup or marked letters in it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as RichText
from PySide6.QtGui import QTextDocumentFragment
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.chat.code import CodeArea
from app.chat.list_model import ChatListModel
from app.chat.undo_bar import UndoBar
from app.presets.bar import PresetBar
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup, setup_from
from app.widgets.elided import ElidedText
from app.widgets.literal import as_tip
from app.window import MainWindow
from tests.app.chat.hands import ask

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

MARKUP = "What does <b> mean in HTML?"


def read(tip: str) -> str:
    """What a user reads in a tool tip."""
    return QTextDocumentFragment.fromHtml(tip).toPlainText() if RichText.mightBeRichText(tip) else tip


@pytest.mark.parametrize("text", [MARKUP, "Fish & chips", "<h1>Title", "1 &lt; 2", "C:\\plain\npath", ""])
def test_tool_tips_say_what_was_written(text: str) -> None:
    assert read(as_tip(text)) == text


def test_titles_with_markup_are_read_whole(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, MARKUP)
    model = window.sidebar.model
    qtbot.waitUntil(lambda: model.rowCount() == 1, timeout=5000)
    assert read(model.index(0).data(Qt.ItemDataRole.ToolTipRole)) == MARKUP
    assert read(window.page.title.toolTip()) == MARKUP
    assert isinstance(model, ChatListModel)


def test_a_cut_line_has_its_whole_self_in_the_tool_tip(qtbot: QtBot) -> None:
    label = ElidedText(MARKUP)
    qtbot.addWidget(label)
    assert read(label.toolTip()) == MARKUP


def test_the_language_of_code_is_no_markup(qtbot: QtBot) -> None:
    area = CodeArea("<img/src=x>")
    qtbot.addWidget(area)
    (label,) = area.findChildren(QLabel)
    assert label.text() == area.label == "<img/src=x>"
    assert label.textFormat() is Qt.TextFormat.PlainText


def test_an_ampersand_in_a_presets_name_is_one(qtbot: QtBot, window: MainWindow) -> None:
    preset = window.presets.add("R&D", ChatSetup("", "", Parameters(temperature=0.3)))
    window.session.parameters.change(setup_from(preset))
    assert window.page.parameters.text() == "R&&D"  # which Qt shows as "R&D"
    bar = PresetBar(window.presets, lambda: window.session.parameters.setup, UndoBar())
    qtbot.addWidget(bar)
    assert "&Keep the changes in “R&&D”" in [action.text() for action in bar.menu().actions()]
