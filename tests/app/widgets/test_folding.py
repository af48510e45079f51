"""Two parts beside each other, or one below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QWidget

from app.widgets.folding import FoldingLayout, beside_buttons
from app.widgets.labels import TextLabel

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

TEXT = "A sentence that is long enough to need several lines in a narrow card, and few in a wide one."


class Card:
    """A card with a text and two buttons, as wide as asked for and as high as it then wants to be."""

    def __init__(self, qtbot: QtBot, width: int) -> None:
        self.frame = QFrame()
        qtbot.addWidget(self.frame)
        self.text = TextLabel(TEXT, self.frame)
        self.buttons = [QPushButton("Open the folder", self.frame), QPushButton("Choose another", self.frame)]
        self.layout = beside_buttons(self.frame, (self.text,), self.buttons)
        self.frame.resize(width, self.layout.heightForWidth(width))
        self.frame.show()

    def bounds(self, widget: QWidget) -> tuple[int, int, int, int]:
        place = QRect(widget.mapTo(self.frame, QPoint(0, 0)), widget.size())
        return place.left(), place.top(), place.right(), place.bottom()


def test_buttons_are_beside_the_text_where_there_is_room(qtbot: QtBot) -> None:
    card = Card(qtbot, 900)
    text, first, second = (card.bounds(widget) for widget in (card.text, *card.buttons))
    assert text[2] < first[0] < second[0]
    assert first[1] == second[1]


@pytest.mark.parametrize("width", [180, 240, 330])
def test_in_a_narrow_card_nothing_is_cut(qtbot: QtBot, width: int) -> None:
    card = Card(qtbot, width)
    text, first, second = (card.bounds(widget) for widget in (card.text, *card.buttons))
    assert text[3] < first[1] <= second[1]
    for left, top, right, bottom in (text, first, second):
        assert 0 <= left <= right < width
        assert 0 <= top <= bottom < card.frame.height()
    assert card.text.height() >= card.text.heightForWidth(card.text.width())
    assert all(button.width() >= button.sizeHint().width() for button in card.buttons)


def test_a_card_asks_for_no_more_width_than_its_widest_part(qtbot: QtBot) -> None:
    card = Card(qtbot, 900)
    widest = max(card.text.minimumSizeHint().width(), *(b.minimumSizeHint().width() for b in card.buttons))
    margins = card.layout.contentsMargins()
    assert card.frame.minimumSizeHint().width() == widest + margins.left() + margins.right()


def test_a_leading_part_keeps_its_width_and_lies_at_the_reading_side(qtbot: QtBot) -> None:
    row = QWidget()
    qtbot.addWidget(row)
    layout = FoldingLayout(row, lead=120)
    name, value = QLabel("Name", row), QLabel("A value of some length", row)
    layout.addWidget(name)
    layout.addWidget(value)
    row.resize(500, layout.heightForWidth(500))
    row.show()
    margin = layout.contentsMargins().left()
    assert (name.x(), name.width()) == (margin, 120)
    assert value.x() == margin + 120 + layout.spacing()
    row.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    row.resize(501, row.height())
    assert name.geometry().right() == 501 - 1 - layout.contentsMargins().right()
    assert value.geometry().right() < name.x()
    row.resize(140, 100)
    assert value.y() > name.geometry().bottom()


def test_a_layout_without_parts_or_with_one_is_whole(qtbot: QtBot) -> None:
    row = QWidget()
    qtbot.addWidget(row)
    layout = FoldingLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    assert (layout.heightForWidth(200), layout.count()) == (0, 0)
    assert layout.itemAt(0) is None
    assert layout.takeAt(0) is None
    only = QLabel("Alone", row)
    layout.addWidget(only)
    row.resize(200, 50)
    row.show()
    assert only.width() == 200
