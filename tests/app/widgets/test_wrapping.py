"""Texts with a "word" as long as many pages: they are broken anywhere, which Qt does much faster."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QTextOption
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment
from app.attachments.viewer import AttachmentDialog
from app.chat.editor import MessageEditor
from app.chat.prose import ProseArea
from app.chat.text_area import PlainArea
from app.composer.edit import MessageEdit
from app.widgets.wrapping import wrap_mode

WORDS, ENCODED = "a word " * 10_000, "A0" * 15_000
_Mode = QTextOption.WrapMode


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", _Mode.WrapAtWordBoundaryOrAnywhere),
        (WORDS, _Mode.WrapAtWordBoundaryOrAnywhere),
        (f"key: {ENCODED}\nend", _Mode.WrapAnywhere),
    ],
)
def test_words_stay_whole_where_they_are_words(qtbot: QtBot, text: str, mode: QTextOption.WrapMode) -> None:
    assert wrap_mode(text) is mode
    viewer, bubble, field = AttachmentDialog(Attachment("a.txt", text)), PlainArea(text), MessageEdit()
    editor, prose = MessageEditor(text, "Save", "", files=False), ProseArea()
    field.show_text(text)
    prose.add_settled(text)
    prose.add_settled("An end.")
    for widget in (viewer, bubble, field, editor, prose):
        qtbot.addWidget(widget)
    areas = (viewer.text, bubble, field, editor.edit, prose)
    assert [area.wordWrapMode() for area in areas] == [mode] * 5


def test_what_is_pasted_behind_a_long_word_leaves_it_as_it_is(qtbot: QtBot) -> None:
    field = MessageEdit()
    qtbot.addWidget(field)
    for text in (ENCODED, " and a word"):
        pasted = QMimeData()
        pasted.setText(text)
        field.insertFromMimeData(pasted)
    assert field.wordWrapMode() is _Mode.WrapAnywhere
