"""How a chat is drawn in the list: its title, a pin, and the latest text or the passage that was found."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.chat.list_model import ChatListModel, Index
from app.theme import theme

_PIN = 14  # pixels
_MARGIN = 11
_BEFORE_MARK = 4  # characters before the first sought word where there is little room


class ChatDelegate(QStyledItemDelegate):
    """A title in one line and a text in a second, quiet one, with the sought words in the accent's colour."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Two lines and some air."""
        return QSize(80, option.fontMetrics.height() * 2 + 18)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw ground, focus, title and preview in the theme's colours."""
        colors = theme().colors
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = selected and bool(option.state & QStyle.StateFlag.State_HasFocus)
        ground = option.rect.adjusted(2, 1, -2, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected or hovered:
            painter.setPen(colors.edge)  # only high contrast has one
            painter.setBrush(colors.selected if selected else colors.hover)
            painter.drawRoundedRect(ground, 8, 8)
        if focused:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(colors.accent)
            painter.drawRoundedRect(ground.adjusted(1, 1, -1, -1), 7, 7)
        text = ground.adjusted(_MARGIN, 7, -_MARGIN, -7)
        top = QRect(text.left(), text.top(), text.width(), option.fontMetrics.height())
        top = self._draw_pin(painter, top, index)
        title = QFont(option.font)
        title.setWeight(QFont.Weight.Medium)
        painter.setPen(colors.text)
        _draw_line(painter, top, title, str(index.data()), [])
        small = QFont(option.font)
        small.setPointSizeF(small.pointSizeF() * 0.9)
        below = text.adjusted(0, option.fontMetrics.height() + 3, 0, 0)
        painter.setPen(colors.text if selected else colors.muted)
        marks = index.data(ChatListModel.MARKS)
        _draw_line(painter, below, small, str(index.data(ChatListModel.PREVIEW)), marks)
        painter.restore()

    @staticmethod
    def _draw_pin(painter: QPainter, line: QRect, index: Index) -> QRect:
        """Draw the pin of a pinned chat, or the box of an archived one; the room that is left."""
        chat = index.data(ChatListModel.CHAT)
        if not (chat.pinned or chat.archived):
            return line
        icon = theme().icon("pin" if chat.pinned else "archive", "muted")
        place = QRect(line.right() - _PIN + 1, line.center().y() - _PIN // 2 + 1, _PIN, _PIN)
        icon.paint(painter, place)
        return line.adjusted(0, 0, -_PIN - 4, 0)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """A title that changes elsewhere does not replace what the user is typing."""
        if not (isinstance(editor, QLineEdit) and editor.isModified()):
            super().setEditorData(editor, index)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """The editor lies over the whole entry."""
        height = editor.sizeHint().height()
        rect = option.rect.adjusted(5, 0, -5, 0)
        editor.setGeometry(rect.left(), rect.center().y() - height // 2, rect.width(), height)


def _draw_line(
    painter: QPainter, area: QRect, font: QFont, text: str, marks: Sequence[tuple[int, int]]
) -> None:
    """Draw a text in one line, cut where the area ends, with the marked places in colour and in sight."""
    metrics = QFontMetrics(font)
    text = text.replace("\n", " ")
    if marks and metrics.horizontalAdvance(text[: sum(marks[0])] + "…") > area.width():
        cut = max(0, marks[0][0] - _BEFORE_MARK)
        text = "…" + text[cut:]
        marks = [(start - cut + 1, length) for start, length in marks]
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width())
    layout = QTextLayout(shown, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    layout.setTextOption(option)
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(area.width())
    layout.endLayout()
    layout.draw(painter, QPointF(area.topLeft()), _formats(marks, len(shown)))


def _formats(marks: Sequence[tuple[int, int]], length: int) -> list[QTextLayout.FormatRange]:
    ranges = []
    for start, count in marks:
        if start >= length:
            continue
        piece = QTextLayout.FormatRange()
        piece.start, piece.length = start, min(count, length - start)
        piece.format = QTextCharFormat()
        piece.format.setForeground(theme().colors.accent)
        piece.format.setFontWeight(QFont.Weight.DemiBold)
        ranges.append(piece)
    return ranges
