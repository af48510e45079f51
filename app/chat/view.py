"""The conversation: messages in a column, scrolled so that the reader is never moved against their will."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.chat.message import AssistantMessage, UserMessage, make_view
from app.chat.notices import Action
from app.chat.passage import mark_passage
from app.chat.reading_place import ReadingPlace
from app.i18n import tr
from app.storage.rows import MessageRow
from app.theme import mark, theme
from engine.events import PromptProgress

COLUMN_CHARACTERS = 96  # width of the text column, in average characters
PAGE = 40  # messages that are laid out; earlier and later ones on request
FIRST = 10  # of them at once, about as many as the window shows; the others when the window is idle
SIDE = 24  # pixels to the left and right of the column, at least
_GOAL_MS = 1000  # how long a place is kept while the messages above it get their heights
_NEAR_END = 24  # pixels: closer to the end than this counts as being at the end


class ConversationView(QScrollArea):
    """Shows one conversation's messages and the answer that streams in."""

    action = Signal(str, int)  # an `Action`, the message's id
    edited = Signal(int, str)  # the message's id, its new text

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._rows: list[MessageRow] = []  # of the whole conversation
        self._views: list[UserMessage | AssistantMessage] = []  # of some of them, one after the other
        self._first = 0  # the place in `_rows` of the first that is laid out
        self._following = True
        self._from_end: int | None = None  # the place to keep while earlier messages are laid out above it
        self._goal: tuple[UserMessage | AssistantMessage, Sequence[str]] | None = None  # a place to be kept
        self._goal_timer = QTimer(self, interval=_GOAL_MS, singleShot=True)
        self._goal_timer.timeout.connect(self._forget_goal)
        self._page = range(0)  # the places in `_rows` that are to be laid out before anybody asks
        self._fill_timer = QTimer(self, interval=0)
        self._fill_timer.timeout.connect(self._fill)
        self._placing = False  # the view scrolls by itself, not the reader
        self._place: ReadingPlace | None = None  # where the reader has scrolled to
        self._column = QWidget()
        self._column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._messages = QVBoxLayout(self._column)
        self._messages.setContentsMargins(0, 18, 0, 26)
        self._messages.setSpacing(20)
        self._earlier, self._later = QToolButton(), QToolButton()
        for button, show in ((self._earlier, self._show_earlier), (self._later, self._show_later)):
            mark(button, pill=True)
            button.clicked.connect(show)
            button.hide()
            self._messages.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
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
        bar.actionTriggered.connect(self._forget_goal)  # the reader's own doing, unlike a changed value
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
        self._rows = list(rows)
        self._lay_out(len(rows) - 1)
        self.scroll_to_end()

    def update_messages(self, rows: Sequence[MessageRow]) -> None:
        """The conversation has another continuation, or lacks a turn: what is the same stays as it is."""
        same = 0
        for before, now in zip(self._rows, rows, strict=False):
            if before != now:
                break
            same += 1
        self._from_end = self._goal = None
        reaches = self._reaches_end
        focused = self._focused()
        self._rows = list(rows)
        if same < self._first:
            self._lay_out(same)
            self._focus_again(focused)
            return
        for view in self._views[same - self._first :]:
            self._discard(view)
        del self._views[same - self._first :]
        shown = len(rows) if reaches else self._first + FIRST
        for row in rows[self._first + len(self._views) : shown]:
            self._insert(row, len(self._views))
        self._after_change()
        self._focus_again(focused)

    def add_message(self, row: MessageRow) -> None:
        """Add a message at the end and go there: the user has just sent it, or asked for it."""
        if not self._reaches_end:
            self._lay_out(len(self._rows) - 1)
        self._rows.append(row)
        self._insert(row, len(self._views))
        self._after_change()
        self.scroll_to_end()

    def reveal(self, message_id: int, terms: Sequence[str] = ()) -> None:
        """Go to a message and mark the first of the sought words in it."""
        place = next((place for place, row in enumerate(self._rows) if row.id == message_id), None)
        if place is None:
            return
        if not self._first <= place < self._first + len(self._views):
            self._lay_out(place)
        self._following, self._from_end = False, None
        self._goal = (self._views[place - self._first], terms)
        QTimer.singleShot(0, self, self._go_to_goal)  # once it is laid out
        self._goal_timer.start()

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
        self._following, self._goal = True, None
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

    def _focused(self) -> tuple[int, str] | None:
        """The message (its place) and the name of the button in it that has the keyboard."""
        widget = self.focusWidget()
        if not isinstance(widget, QToolButton) or not widget.hasFocus():
            return None
        for place, view in enumerate(self._views, self._first):
            if view.isAncestorOf(widget):
                return place, widget.accessibleName()
        return None

    def _focus_again(self, focused: tuple[int, str] | None) -> None:
        """Who turns over versions by the keyboard goes on where they were, though the message is another."""
        if focused is None:
            return
        place, name = focused[0] - self._first, focused[1]
        buttons = self._views[place].findChildren(QToolButton) if 0 <= place < len(self._views) else []
        usable = [button for button in buttons if button.isEnabled() and not button.isHidden()]
        usable.sort(key=lambda button: button.accessibleName() != name)
        target = usable[0] if usable else self
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    def _insert(self, row: MessageRow, index: int) -> None:
        view = make_view(row)
        view.action.connect(lambda action, message=row.id: self.action.emit(action, message))
        view.version_requested.connect(lambda message: self.action.emit(Action.SHOW_VERSION, message))
        view.edited.connect(lambda text, message=row.id: self.edited.emit(message, text))
        self._views.insert(index, view)
        self._messages.insertWidget(1 + index, view)  # after the button for earlier messages
        self._fit(view)

    def _fit(self, view: UserMessage | AssistantMessage) -> None:
        if isinstance(view, UserMessage):
            view.fit(self._column.width())

    def _show_earlier(self) -> None:
        """Lay out one page more, keeping what the reader sees where it is."""
        self._goal = None
        self._keep_place()
        last, self._first = self._first, max(0, self._first - PAGE)
        for index, row in enumerate(self._rows[self._first : last]):
            self._insert(row, index)
        self._after_change()

    def _show_later(self) -> None:
        """Lay out one page more below."""
        self._following = False
        end = self._first + len(self._views)
        for row in self._rows[end : end + PAGE]:
            self._insert(row, len(self._views))
        self._after_change()

    @property
    def _reaches_end(self) -> bool:
        return self._first + len(self._views) == len(self._rows)

    def _lay_out(self, place: int) -> None:
        """Show the messages around a place in the conversation at once, and soon the page around them."""
        self._from_end = self._goal = None
        for view in self._views:
            self._discard(view)
        count = len(self._rows)
        start = max(0, min(place - PAGE // 2, count - PAGE))
        self._page = range(start, min(start + PAGE, count))
        self._views, self._first = [], max(0, min(place - FIRST // 2, count - FIRST))
        for row in self._rows[self._first : self._first + FIRST]:
            self._insert(row, len(self._views))
        self._after_change()
        self._fill_timer.start()

    @Slot()
    def _fill(self) -> None:
        """Lay out one message more on either side, until the page is whole."""
        end = self._first + len(self._views)
        earlier = self._first > self._page.start
        if end < min(self._page.stop, len(self._rows)):
            self._insert(self._rows[end], len(self._views))
        elif not earlier:
            self._fill_timer.stop()
            return
        if earlier:
            if not self._following and self._goal is None:
                self._keep_place()
            self._first -= 1
            self._insert(self._rows[self._first], 0)
        self._after_change()

    def _keep_place(self) -> None:
        """What the reader sees is to stay where it is while something is laid out above it."""
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

    def _after_change(self) -> None:
        later = len(self._rows) - self._first - len(self._views)
        self._earlier.setVisible(self._first > 0)
        self._earlier.setText(tr("Show earlier messages ({n})", n=self._first))
        self._later.setVisible(later > 0)
        self._later.setText(tr("Show later messages ({n})", n=later))
        for view in self._views:
            view.set_last(view is self._views[-1] and not later)

    def _discard(self, view: UserMessage | AssistantMessage) -> None:
        self._messages.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _streaming_view(self, message_id: int) -> AssistantMessage | None:
        last = self._views[-1] if self._views and self._reaches_end else None
        if isinstance(last, AssistantMessage) and last.row.id == message_id:
            return last
        return None

    def _on_scrolled(self, value: int) -> None:
        if not self._placing:
            self._from_end = None
            self._place = ReadingPlace(self._content, self._views, value)
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
