"""The conversation: messages in a column, scrolled so that the reader is never moved against their will."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QToolButton, QWidget

from app.chat.column import MessageColumn
from app.chat.message import AssistantMessage, UserMessage
from app.chat.passage import mark_passage
from app.chat.reading_place import ReadingPlace
from app.i18n import tr
from app.storage.rows import MessageRow
from app.theme import mark, theme
from engine.events import PromptProgress

COLUMN_CHARACTERS = 96  # width of the text column, in average characters
SIDE = 24  # pixels to the left and right of the column, at least
_GOAL_MS = 1000  # how long a place is kept while the messages above it get their heights
_NEAR_END = 24  # pixels: closer to the end than this counts as being at the end


class ConversationView(QScrollArea):
    """Shows one conversation's messages and the answer that streams in."""

    action = Signal(str, int)  # an `Action`, the message's id
    edited = Signal(int, str)  # the message's id, its new text
    edit_discarded = Signal(int, str)  # the message's id, what it was being changed to
    edit_changed = Signal(int, str)  # the message's id, what its text is being changed to ("": not at all)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._following = True
        self._from_end: int | None = None  # the place to keep while earlier messages are laid out above it
        self._goal: tuple[UserMessage | AssistantMessage, Sequence[str]] | None = None  # a place to be kept
        self._goal_timer = QTimer(self, interval=_GOAL_MS, singleShot=True)
        self._goal_timer.timeout.connect(self._forget_goal)
        self._placing = False  # the view scrolls by itself, not the reader
        self._place: ReadingPlace | None = None  # where the reader has scrolled to
        column = self.column = MessageColumn()
        column.action.connect(self.action)
        column.edited.connect(self.edited)
        column.edit_changed.connect(self.edit_changed)
        column.edit_discarded.connect(self.edit_discarded)
        column.grows_above.connect(self._on_grows_above)
        column.asked_earlier.connect(self._keep_place)
        column.asked_later.connect(self._stop_following)
        column.focus_lost.connect(self.setFocus)
        self._content = QWidget()
        row = self._row = QHBoxLayout(self._content)
        row.setContentsMargins(SIDE, 0, SIDE, 0)
        row.addStretch(1)
        row.addWidget(self.column, 1000)
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
        bar.actionTriggered.connect(self._forget_goal)  # the reader's own doing, unlike a changed value
        bar.rangeChanged.connect(self._on_range_changed)

    @property
    def views(self) -> list[UserMessage | AssistantMessage]:
        """The messages that are laid out, from top to bottom."""
        return list(self.column.views)

    @property
    def new_text_button(self) -> QToolButton:
        """Appears over the conversation when text arrives below what the reader sees."""
        return self._new_text

    def show_messages(self, rows: Sequence[MessageRow]) -> None:
        """Show another conversation, from its end."""
        self._from_end = self._goal = None
        self.column.show_rows(rows)
        self.scroll_to_end()

    def update_messages(self, rows: Sequence[MessageRow]) -> None:
        """The conversation has another continuation, or lacks a turn: what is the same stays as it is."""
        self._from_end = self._goal = None
        self.column.update_rows(rows)

    @Slot(object)
    def show_edits(self, edits: Mapping[int, str]) -> None:
        """Show the changes of messages that were begun earlier, by the messages' ids."""
        self.column.show_edits(edits)

    def add_message(self, row: MessageRow) -> None:
        """Add a message at the end and go there: the user has just sent it, or asked for it."""
        self.column.add_row(row)
        self.scroll_to_end()

    def reveal(self, message_id: int, terms: Sequence[str] = ()) -> None:
        """Go to a message and mark the first of the sought words in it."""
        view = self.column.view_of(message_id)
        if view is None:
            return
        self._following, self._from_end = False, None
        self._goal = (view, terms)
        QTimer.singleShot(0, self, self._go_to_goal)  # once it is laid out
        self._goal_timer.start()

    def edit(self, message_id: int) -> None:
        """Go to a message and show the field in which it is changed."""
        self.reveal(message_id)
        view = self.column.view_of(message_id)
        if view is not None:
            view.begin_edit()

    def append_text(self, message_id: int, text: str) -> None:
        """Add streamed text to a message of this conversation; others are ignored."""
        if self.column.is_last(message_id):
            self._from_end = None
            self.column.append(message_id, text)
            if not self._following or not self.column.reaches_end:
                self._new_text.show()
                self._new_text.raise_()

    def show_prompt_progress(self, message_id: int, progress: PromptProgress) -> None:
        """Show how far the model has read before its first word."""
        view = self.column.streaming_view(message_id)
        if view is not None:
            view.show_prompt_progress(progress)

    def change_message(self, row: MessageRow) -> None:
        """More is known about the answer under way."""
        self.column.change(row)

    def show_search(self, message_id: int, beams: int, tokens: int) -> None:
        """Show how far a beam search is."""
        view = self.column.streaming_view(message_id)
        if view is not None and view.streaming:
            view.show_search(beams, tokens)

    def show_remaining(self, message_id: int, answers: int) -> None:
        """Show how many other answers than this one are still being written."""
        view = self.column.streaming_view(message_id)
        if view is not None and not view.streaming:
            view.show_remaining(answers)

    def finish_message(self, row: MessageRow) -> None:
        """Show how an answer ended."""
        self.column.finish(row)

    def scroll_to_end(self) -> None:
        """Go to the end, and stay there while text streams in."""
        self._following, self._goal = True, None
        self._new_text.hide()
        self.column.show_end()
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def apply_width(self) -> None:
        """Set the column's width from the font; called when the font changes."""
        self.column.setMaximumWidth(self.fontMetrics().averageCharWidth() * COLUMN_CHARACTERS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the button at its place."""
        super().resizeEvent(event)
        self.apply_width()
        button = self._new_text
        button.adjustSize()
        button.move((self.width() - button.width()) // 2, self.height() - button.height() - 14)

    @Slot()
    def _on_grows_above(self) -> None:
        if not self._following and self._goal is None:
            self._keep_place()

    @Slot()
    def _stop_following(self) -> None:
        self._following = False

    @Slot()
    def _keep_place(self) -> None:
        """What the reader sees is to stay where it is while something is laid out above it."""
        self._goal = None
        bar = self.verticalScrollBar()
        self._from_end = bar.maximum() - bar.value()

    @Slot()
    def _forget_goal(self) -> None:
        self._goal = None

    def _go_to_goal(self) -> None:
        if self._goal is None:
            return
        view, terms = self._goal
        place = mark_passage(view, terms)
        top = view.mapTo(self._content, QPoint(0, place.top() if place else 0)).y()
        self._placing = True
        self.verticalScrollBar().setValue(top - self.viewport().height() // 3)
        self._placing = False

    def _on_scrolled(self, value: int) -> None:
        if not self._placing:
            self._from_end = None
            self._place = ReadingPlace(self._content, self.column.views, value)
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
        elif self._goal is not None:  # the messages above have got their heights
            QTimer.singleShot(0, self, self._go_to_goal)
        elif self._following:
            self.verticalScrollBar().setValue(maximum)
        elif self._place is not None:
            value = self._place.scroll_value()
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() if value is None else value)
        self._placing = False
