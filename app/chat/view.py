"""The conversation: messages in a column, scrolled so that the reader is never moved against their will."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.chat.message import AssistantMessage, UserMessage, make_view
from app.i18n import tr
from app.storage.rows import MessageRow
from app.theme import mark, theme
from engine.events import PromptProgress

COLUMN_CHARACTERS = 96  # width of the text column, in average characters
PAGE = 40  # messages that are laid out at once; earlier ones on request
SIDE = 24  # pixels to the left and right of the column, at least
_NEAR_END = 24  # pixels: closer to the end than this counts as being at the end


class ConversationView(QScrollArea):
    """Shows one conversation's messages and the answer that streams in."""

    action = Signal(str, int)  # an `Action`, the message's id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._rows: list[MessageRow] = []  # of the whole conversation
        self._views: list[UserMessage | AssistantMessage] = []  # of the last of them
        self._following = True
        self._from_end: int | None = None  # the place to keep while earlier messages are laid out above it
        self._placing = False  # the view scrolls by itself, not the reader
        self._column = QWidget()
        self._column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._messages = QVBoxLayout(self._column)
        self._messages.setContentsMargins(0, 18, 0, 26)
        self._messages.setSpacing(20)
        self._earlier = QToolButton()
        mark(self._earlier, pill=True)
        self._earlier.clicked.connect(self._show_earlier)
        self._earlier.hide()
        self._messages.addWidget(self._earlier, 0, Qt.AlignmentFlag.AlignHCenter)
        self._messages.addStretch(1)
        self._content = QWidget()
        row = self._row = QHBoxLayout(self._content)
        row.setContentsMargins(SIDE, 0, SIDE, 0)
        row.addStretch(1)
        row.addWidget(self._column, 1000)
        row.addStretch(1)
        self.setWidget(self._content)
        self._new_text = QToolButton(self)
        mark(self._new_text, pill=True)
        self._new_text.setText(tr("New text"))
        self._new_text.setAccessibleName(tr("New text below: go to the end"))
        self._new_text.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme().set_icon(self._new_text, "arrow-down")
        self._new_text.clicked.connect(self.scroll_to_end)
        self._new_text.hide()
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_range_changed)
        self._column.installEventFilter(self)

    @property
    def views(self) -> list[UserMessage | AssistantMessage]:
        """The messages that are laid out, from top to bottom."""
        return list(self._views)

    @property
    def new_text_button(self) -> QToolButton:
        """Appears over the conversation when text arrives below what the reader sees."""
        return self._new_text

    def show_messages(self, rows: Sequence[MessageRow]) -> None:
        """Show another conversation, from its end."""
        self._from_end = None
        self._clear()
        self._rows = list(rows)
        for row in self._rows[-PAGE:]:
            self._insert(row, len(self._views))
        self._after_change()
        self.scroll_to_end()

    def add_message(self, row: MessageRow) -> None:
        """Add a message at the end and go there: the user has just sent it, or asked for it."""
        self._rows.append(row)
        self._insert(row, len(self._views))
        self._after_change()
        self.scroll_to_end()

    def remove_last(self) -> None:
        """Take the last message off, before another answer to the same question."""
        self._rows.pop()
        view = self._views.pop()
        self._messages.removeWidget(view)
        view.deleteLater()
        self._after_change()

    def append_text(self, message_id: int, text: str) -> None:
        """Add streamed text to a message of this conversation; others are ignored."""
        view = self._streaming_view(message_id)
        if view is not None:
            self._from_end = None
            view.append(text)
            if not self._following:
                self._new_text.show()
                self._new_text.raise_()

    def show_prompt_progress(self, message_id: int, progress: PromptProgress) -> None:
        """Show how far the model has read before its first word."""
        view = self._streaming_view(message_id)
        if view is not None:
            view.show_prompt_progress(progress)

    def finish_message(self, row: MessageRow) -> None:
        """Show how an answer ended."""
        view = self._streaming_view(row.id)
        if view is not None:
            self._rows[-1] = row
            view.finish(row)

    def scroll_to_end(self) -> None:
        """Go to the end, and stay there while text streams in."""
        self._following = True
        self._new_text.hide()
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def apply_width(self) -> None:
        """Set the column's width from the font; called when the font changes."""
        self._column.setMaximumWidth(self.fontMetrics().averageCharWidth() * COLUMN_CHARACTERS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the button at its place."""
        super().resizeEvent(event)
        self.apply_width()
        button = self._new_text
        button.adjustSize()
        button.move((self.width() - button.width()) // 2, self.height() - button.height() - 14)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit the bubbles when the column gets another width."""
        if watched is self._column and event.type() is QEvent.Type.Resize:
            for view in self._views:
                self._fit(view)
        return super().eventFilter(watched, event)

    def _insert(self, row: MessageRow, index: int) -> None:
        view = make_view(row)
        view.action.connect(lambda action, message=row.id: self.action.emit(action, message))
        self._views.insert(index, view)
        self._messages.insertWidget(1 + index, view)  # after the button for earlier messages
        self._fit(view)

    def _fit(self, view: UserMessage | AssistantMessage) -> None:
        if isinstance(view, UserMessage):
            view.fit(self._column.width())

    def _show_earlier(self) -> None:
        """Lay out one page more, keeping what the reader sees where it is."""
        bar = self.verticalScrollBar()
        self._from_end = bar.maximum() - bar.value()
        last = len(self._rows) - len(self._views)
        for index, row in enumerate(self._rows[max(0, last - PAGE) : last]):
            self._insert(row, index)
        self._after_change()

    def _after_change(self) -> None:
        hidden = len(self._rows) - len(self._views)
        self._earlier.setVisible(hidden > 0)
        self._earlier.setText(tr("Show earlier messages ({n})", n=hidden))
        for view in self._views:
            view.set_last(view is self._views[-1])

    def _clear(self) -> None:
        for view in self._views:
            self._messages.removeWidget(view)
            view.hide()
            view.deleteLater()
        self._views, self._rows = [], []

    def _streaming_view(self, message_id: int) -> AssistantMessage | None:
        last = self._views[-1] if self._views else None
        if isinstance(last, AssistantMessage) and last.row.id == message_id:
            return last
        return None

    def _on_scrolled(self, value: int) -> None:
        if not self._placing:
            self._from_end = None
        at_end = value >= self.verticalScrollBar().maximum() - _NEAR_END
        self._following = at_end
        if at_end:
            self._new_text.hide()

    def _on_range_changed(self, _minimum: int, maximum: int) -> None:
        # The column keeps its place, in line with the composer, when the scroll bar comes or goes.
        bar_width = self.verticalScrollBar().sizeHint().width() if maximum > 0 else 0
        self._row.setContentsMargins(SIDE, 0, max(0, SIDE - bar_width), 0)
        self._placing = True
        if self._from_end is not None:
            self.verticalScrollBar().setValue(maximum - self._from_end)
        elif self._following:
            self.verticalScrollBar().setValue(maximum)
        self._placing = False
