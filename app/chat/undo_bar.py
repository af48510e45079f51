"""An offer, for a while, to take back what was just done."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.labels import TextLabel

UNDO_MS = 12_000


class UndoBar(QFrame):
    """Hidden until there is something to take back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, card=True)
        self._take_back: Callable[[], object] = lambda: None
        self._label = TextLabel()
        self.button = QPushButton(tr("Undo"))
        self.button.clicked.connect(self._undo)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(UNDO_MS)
        self._timer.timeout.connect(self._expire)
        column = QVBoxLayout(self)  # the side bar has no room for both beside one another
        column.setContentsMargins(12, 8, 8, 8)
        column.addWidget(self._label)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignRight)
        self.hide()

    def offer(self, text: str, take_back: Callable[[], object]) -> None:
        """Say what was done; the button calls `take_back`. Replaces an earlier offer."""
        self._take_back = take_back
        self._label.setText(text)
        self.setAccessibleName(text)
        self.button.setAccessibleDescription(text)
        self.show()
        self._timer.start()
        announce(self, text)

    def _expire(self) -> None:
        if self.button.hasFocus():
            self._timer.start()  # whoever has come there by the keyboard is about to press it
        else:
            self.hide()

    def _undo(self) -> None:
        self.hide()
        self._timer.stop()
        self._take_back()
