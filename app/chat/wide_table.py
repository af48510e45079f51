"""A table with many columns: it scrolls sideways rather than break its words."""

from __future__ import annotations

import math
import re

from PySide6.QtCore import QSizeF, Qt, Slot
from PySide6.QtGui import QTextOption, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.chat.prose import ProseArea
from app.chat.prose_writer import is_right_to_left
from app.chat.sideways import scroll_sideways
from app.i18n import tr

COLUMNS = 5  # fewer fit beside one another

_BAR = re.compile(r"(?<!\\)\|")


def is_wide_table(source: str) -> bool:
    """Whether a piece of Markdown is, or is going to be, a table with many columns."""
    first = source.split("\n", 1)[0].strip()
    return first.startswith("|") and len(_BAR.findall(first.rstrip("|"))) >= COLUMNS


class WideTable(ProseArea):
    """As wide as its words need."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrapMode(QTextOption.WrapMode.WordWrap)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setAccessibleName(tr("Table of the message"))
        self._moved = False  # whether the reader has scrolled
        self.horizontalScrollBar().actionTriggered.connect(self._on_moved)
        # Later: while Qt tells of the range, the new height would change it again.
        self.horizontalScrollBar().rangeChanged.connect(self._fit_again, Qt.ConnectionType.QueuedConnection)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll sideways; the rest is the conversation's."""
        scroll_sideways(self.horizontalScrollBar(), event)
        self._moved = self._moved or event.isAccepted()

    @Slot()
    def _on_moved(self) -> None:
        self._moved = True

    @Slot()
    def _fit_again(self) -> None:
        if not self._moved:  # Qt has gone to the end, where the text was written
            bar = self.horizontalScrollBar()
            bar.setValue(bar.maximum() if self._begins_right() else bar.minimum())
        self._fit(self.document().documentLayout().documentSize())

    def _begins_right(self) -> bool:
        return is_right_to_left((self._tail or "".join(self.blocks)).replace("|", " "))

    def _fit(self, size: QSizeF) -> None:
        bar = self.horizontalScrollBar()
        room = bar.sizeHint().height() if bar.maximum() > 0 else 0
        super()._fit(QSizeF(size.width(), math.ceil(size.height()) + room))
