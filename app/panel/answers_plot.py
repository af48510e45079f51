"""The speed of a chat's answers, one bar each. The arrow keys or a click choose the one to show."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app.answers import short_number
from app.i18n import tr
from app.panel.plot import Plot
from app.panel.ticks import ticks
from app.theme import theme

_LEAST, _MOST = 6.0, 28.0  # pixels of a bar with its gap


class AnswersPlot(Plot):
    """`chosen` brings the index of an answer, or None: back to the present one."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rates: tuple[float, ...] = ()
        self._current: int | None = None  # the one that is shown
        self._fixed = False  # whether the reader chose it
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Speed of the answers in this chat"))

    def show_rates(self, rates: Sequence[float], current: int | None, *, fixed: bool) -> None:
        """Tokens per second by answer; `current` is shown now, by the reader's choice if `fixed`."""
        self._rates, self._current, self._fixed = tuple(rates), current, fixed
        self.highest = max(self._rates, default=0.0)
        self.setAccessibleDescription("" if current is None else self.words(current))
        self.update()

    def words(self, index: int) -> str:
        """One answer in words."""
        return tr(
            "Answer {n} of {all}: {rate} tokens per second",
            n=index + 1,
            all=len(self._rates),
            rate=short_number(self._rates[index]),
        )

    def bars(self) -> list[tuple[int, QRectF]]:
        """The answers that there is room for, the current one among them, and their bars."""
        area, count = self.area(), len(self._rates)
        room = max(1, int(area.width() / _LEAST))
        first = max(0, count - room)
        if self._current is not None:
            first = min(first, self._current)
        shown = range(first, min(count, first + room))
        each = min(_MOST, area.width() / max(1, len(shown)))
        gap = max(1.0, each / 5)
        found = []
        for place, index in enumerate(shown):
            height = max(1.0, self.height_of(self._rates[index]))
            left = area.left() + place * each + gap / 2
            found.append((index, QRectF(left, area.bottom() - height, each - gap, height)))
        return found

    def answer_at(self, place: QPointF) -> int | None:
        """The answer whose column is at a place of the widget."""
        for index, bar in self.bars():
            if bar.left() - 2 <= place.x() <= bar.right() + 2:
                return index
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bars, their numbers, and a mark under the current one."""
        if not self._rates:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint_frame(painter)
        colors, bars = theme().colors, self.bars()
        for index, bar in bars:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.accent)
            painter.drawRect(bar)
            if index == self._current:
                painter.setPen(QPen(colors.text, 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(bar.adjusted(-1, -1, 1, 1))
        self._paint_numbers(painter, bars)
        if self.hasFocus():
            painter.setPen(QPen(colors.link, 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk over the answers; Escape goes back to the present one."""
        last = len(self._rates) - 1
        at = last if self._current is None else self._current
        steps = {
            Qt.Key.Key_Left: at - 1,
            Qt.Key.Key_Right: at + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        key = Qt.Key(event.key())
        if key is Qt.Key.Key_Escape and self._fixed:
            self.chosen.emit(None)
        elif key in steps and last >= 0:
            self.chosen.emit(max(0, min(last, steps[key])))
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose an answer; the chosen one again goes back to the present."""
        index = self.answer_at(event.position())
        if index is not None:
            self.chosen.emit(None if self._fixed and index == self._current else index)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide it."""
        super().focusOutEvent(event)
        self.update()

    def event(self, event: QEvent) -> bool:
        """Tool tips of the bars; and Escape is ours while an answer is chosen, not the window's."""
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.answer_at(QPointF(event.pos()))
            if index is not None:
                QToolTip.showText(event.globalPos(), self.words(index), self)
            return True
        ours = event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._fixed
        if ours and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)

    def _paint_numbers(self, painter: QPainter, bars: list[tuple[int, QRectF]]) -> None:
        if not bars:
            return
        painter.setPen(theme().colors.muted)
        wide = self.fontMetrics().horizontalAdvance(str(len(self._rates))) + 6
        each = bars[1][1].left() - bars[0][1].left() if len(bars) > 1 else wide
        line = self.below()
        spare = max(0.0, (wide - each) / 2)  # the numbers at the ends move in
        for place in ticks(len(bars), each, wide + spare, bars[0][0]):
            index, bar = bars[place]
            left = max(line.left(), min(bar.center().x() - wide / 2, line.right() - wide))
            box = QRectF(left, line.top(), wide, line.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(index + 1))
