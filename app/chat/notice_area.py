"""The notices above a conversation: as high as they need, up to a share of the page; then they scroll."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.chat.notice_bar import NoticeBar

_BELOW = 6  # pixels between the last notice and the conversation
_SHARE = 0.3  # of the height of the page: what is below keeps its room, and is not squeezed


class NoticeArea(QScrollArea):
    """One notice below the other; no room where nothing is to be said."""

    def __init__(self, notices: Sequence[NoticeBar]) -> None:
        super().__init__()
        content = QWidget()
        # Else it would never be lower than in its narrowest state, and scroll without need.
        content.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(0, 0, 0, _BELOW)
        for notice in notices:
            self._column.addWidget(notice)
        self.setWidget(content)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._notices = notices
        content.installEventFilter(self)
        self.fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit again when a notice comes, goes or says something else."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The lines are others in another width."""
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Take the height of the notices, within the share."""
        needed = 0
        if any(not notice.isHidden() for notice in self._notices):
            needed = self._column.totalHeightForWidth(self.width())
        page = self.parentWidget()
        most = needed if page is None else round(page.height() * _SHARE)
        self.setFixedHeight(min(needed, most))
        # Left to itself the bar can stay where it is the room that the bar takes alone that is missing.
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if needed <= most else policy.ScrollBarAsNeeded
        )
