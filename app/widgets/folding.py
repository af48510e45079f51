"""Two parts side by side, or the second below the first where the place is too narrow for that."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QFrame, QLayoutItem, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.widgets.flow import FlowLayout
from app.widgets.item_layout import ItemLayout

_TEXT_IN_CHARACTERS = 26  # that are to be had beside buttons: in a narrower column nobody likes to read


class FoldingLayout(ItemLayout):
    """The layout of the two widgets that are added to it.

    With a `lead`, the first has that width (pixels) beside the second, which gets the rest. Without, the
    second, such as buttons, has the width that it would like and is halfway up the first, or beside its
    first line (`top`). The first gets the rest then, at least `least` characters of the present font.
    """

    def __init__(self, parent: QWidget, *, lead: int = 0, least: int = 0, top: bool = False) -> None:
        super().__init__(parent, spacing=12)
        self._lead, self._least = lead, least
        self._top = top or bool(lead)

    def heightForWidth(self, width: int) -> int:
        """The height of the higher part, or of both."""
        margins = self.contentsMargins()
        parts = self._places(width - margins.left() - margins.right())
        return max((part.bottom() + 1 for part in parts), default=0) + margins.top() + margins.bottom()

    def sizeHint(self) -> QSize:
        """Both side by side."""
        margins = self.contentsMargins()
        width = self._beside_width() + margins.left() + margins.right()
        return QSize(width, self.heightForWidth(width))

    def minimumSize(self) -> QSize:
        """As wide as the wider part; the height follows from the width."""
        margins = self.contentsMargins()
        size = QSize()
        for item in self._shown():
            size = size.expandedTo(item.minimumSize())
        return size.grownBy(margins)

    def setGeometry(self, rect: QRect) -> None:
        """Place the parts."""
        super().setGeometry(rect)
        inner = rect.marginsRemoved(self.contentsMargins())
        parent = self.parentWidget()
        mirrored = parent is not None and parent.isRightToLeft()
        for item, place in zip(self._shown(), self._places(inner.width()), strict=True):
            moved = place.translated(inner.topLeft())
            if mirrored:
                moved.moveRight(inner.right() - place.left())
            item.setGeometry(moved)

    def _shown(self) -> list[QLayoutItem]:
        """The parts that are not hidden."""
        return [item for item in self._items if not item.isEmpty()]

    def _beside_width(self) -> int:
        """Pixels that both take side by side."""
        if len(self._shown()) < 2:
            return self.minimumSize().width()
        first, second = self._shown()
        if self._lead:
            return self._lead + self.spacing() + second.minimumSize().width()
        return (
            max(self._least_width(), first.minimumSize().width()) + self.spacing() + second.sizeHint().width()
        )

    def _least_width(self) -> int:
        """Pixels that the first part must have beside the second."""
        parent = self.parentWidget()
        return 0 if parent is None else parent.fontMetrics().averageCharWidth() * self._least

    def _places(self, width: int) -> list[QRect]:
        """Where the parts lie in a rectangle of this width."""
        if len(self._shown()) < 2:
            return [QRect(0, 0, width, _height(item, width)) for item in self._shown()]
        first, second = self._shown()
        if width < self._beside_width():
            top = QRect(0, 0, width, _height(first, width))
            return [top, QRect(0, top.height() + self.spacing() // 2, width, _height(second, width))]
        left = self._lead or width - self.spacing() - second.sizeHint().width()
        right = width - self.spacing() - left
        heights = _height(first, left), _height(second, right)
        down = 0 if self._top else max(0, heights[0] - heights[1]) // 2
        return [
            QRect(0, 0, left, heights[0] if self._lead else max(heights)),
            QRect(left + self.spacing(), down, right, heights[1]),
        ]


class ButtonRow(QWidget):
    """Buttons in a line, or in several where there is no room for one."""

    def __init__(self, buttons: Sequence[QPushButton], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._flow = FlowLayout(self, spacing=8)
        for button in buttons:
            self._flow.addWidget(button)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        """All in one line."""
        width = self._flow.line_width()
        return QSize(width, self._flow.heightForWidth(width))


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()


def beside_buttons(frame: QFrame, texts: Sequence[QWidget], buttons: Sequence[QPushButton]) -> FoldingLayout:
    """Lay a card out: texts, and buttons beside them, or below where the card is narrow."""
    words = QWidget(frame)
    column = QVBoxLayout(words)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(4)
    for text in texts:
        column.addWidget(text)
    layout = FoldingLayout(frame, least=_TEXT_IN_CHARACTERS)
    layout.setContentsMargins(16, 12, 16, 12)
    layout.addWidget(words)
    layout.addWidget(ButtonRow(buttons, frame))
    return layout
