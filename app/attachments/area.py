"""The room that chips have: as high as they need, up to some lines; then it scrolls."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy

from app.attachments.chips import ChipRow

_LINES = 3


class ChipArea(QScrollArea):
    """Around a row of chips; Tab passes over it."""

    def __init__(self, row: ChipRow) -> None:
        super().__init__()
        self._row = row
        self.setWidget(row)
        self.setWidgetResizable(True)
        # Else it would never be lower than all chips one below the other, and scroll without need.
        policy = row.sizePolicy()
        policy.setVerticalPolicy(QSizePolicy.Policy.Ignored)
        row.setSizePolicy(policy)
        row.setAutoFillBackground(False)  # the ground is the composer's
        self.viewport().setAutoFillBackground(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The lines are others in another width."""
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Take the height of the chips."""
        if self._row.chips:
            line = self._row.chips[0].sizeHint().height()
            most = _LINES * line + (_LINES - 1) * self._row.spacing
            self.setFixedHeight(min(self._row.heightForWidth(self.width()), most))
