"""The messages that are laid out: a page of the conversation, the rest of it on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.chat.boundary import boundary_of
from app.chat.message import AssistantMessage, UserMessage, make_view
from app.chat.notices import Action
from app.i18n import tr
from app.storage.rows import MessageRow
from app.theme import mark

PAGE = 40  # messages that are laid out; earlier and later ones on request
FIRST = 10  # of them at once, at most; the others when the window is idle
FIRST_CHARACTERS = 6000  # of these messages, about two screens: as much as the window can show


def first_rows(lengths: Sequence[int], place: int) -> range:
    """The messages that are laid out at once around a place, from their lengths in characters."""
    count = len(lengths)
    first = end = max(0, min(place, count))
    characters = 0
    while end - first < FIRST and (first > 0 or end < count):
        later = end < count and (first == 0 or end - place <= place - first)
        characters += lengths[end if later else first - 1]
        if end - first >= 2 and characters > FIRST_CHARACTERS:
            break
        first, end = (first, end + 1) if later else (first - 1, end)
    return range(first, end)


class MessageColumn(QWidget):
    """Knows all messages of the conversation and shows some of them, one below the other."""

    action = Signal(str, int)  # an `Action`, the message's id
    edited = Signal(int, str)  # the message's id, its new text
    edit_changed = Signal(int, str)  # the message's id, what its text is being changed to ("": not at all)
    edit_discarded = Signal(int, str)  # the message's id, what it was being changed to
    grows_above = Signal()  # something is about to be laid out above what the reader sees
    asked_earlier = Signal()  # the reader wants to see more above, or
    asked_later = Signal()  # below
    focus_lost = Signal()  # the message that had the keyboard is gone

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.rows: list[MessageRow] = []  # of the whole conversation
        self.views: list[UserMessage | AssistantMessage] = []  # of some of them
        self._edits: dict[int, str] = {}  # what the texts of messages are being changed to
        self._first = 0  # the place in `rows` of the first that is laid out
        self._page = range(0)  # the places that are to be laid out before anybody asks
        self._fill_timer = QTimer(self, interval=0)
        self._fill_timer.timeout.connect(self._fill)
        self._messages = QVBoxLayout(self)
        self._messages.setContentsMargins(0, 18, 0, 26)
        self._messages.setSpacing(20)
        self.earlier, self.later = QToolButton(), QToolButton()
        for button, show in ((self.earlier, self.show_earlier), (self.later, self.show_later)):
            mark(button, pill=True)
            button.clicked.connect(show)
            button.hide()
            self._messages.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        self._messages.addStretch(1)

    @property
    def reaches_end(self) -> bool:
        """Whether the last message is laid out."""
        return self._first + len(self.views) == len(self.rows)

    def show_rows(self, rows: Sequence[MessageRow]) -> None:
        """Show another conversation, from its end."""
        self.rows, self._edits = list(rows), {}
        self._lay_out(len(rows) - 1)

    def update_rows(self, rows: Sequence[MessageRow]) -> None:
        """The conversation has another continuation, or lacks a turn: what is the same stays as it is."""
        same = 0
        for before, now in zip(self.rows, rows, strict=False):
            if before != now:
                break
            same += 1
        reaches = self.reaches_end
        focused = self._focused()
        self.rows = list(rows)
        if same < self._first:
            self._lay_out(same)
            self._focus_again(focused)
            return
        for view in self.views[same - self._first :]:
            self._discard(view)
        del self.views[same - self._first :]
        shown = len(rows) if reaches else self._first + FIRST
        for row in self.rows[self._first + len(self.views) : shown]:
            self._insert(row, len(self.views))
        self._after_change()
        self._focus_again(focused)

    def add_row(self, row: MessageRow) -> None:
        """Add a message at the end."""
        self.show_end()
        self.rows.append(row)
        self._insert(row, len(self.views))
        self._after_change()

    def show_edits(self, edits: Mapping[int, str]) -> None:
        """Go on with changes that were begun earlier, also of messages that are laid out later."""
        self._edits = dict(edits)
        for view in self.views:
            self._take_up_edit(view)

    def view_of(self, message_id: int) -> UserMessage | AssistantMessage | None:
        """The view of a message, laid out for this if need be; None if it is not in the conversation."""
        place = next((place for place, row in enumerate(self.rows) if row.id == message_id), None)
        if place is None:
            return None
        if not self._first <= place < self._first + len(self.views):
            self._lay_out(place)
        return self.views[place - self._first]

    def streaming_view(self, message_id: int) -> AssistantMessage | None:
        """The view of the last message, if it is this answer and laid out."""
        last = self.views[-1] if self.views and self.reaches_end else None
        if isinstance(last, AssistantMessage) and last.row.id == message_id:
            return last
        return None

    def is_last(self, message_id: int) -> bool:
        """Whether this is the last message of the conversation, laid out or not."""
        return bool(self.rows) and self.rows[-1].id == message_id

    def append(self, message_id: int, text: str) -> None:
        """Add streamed text to the last message, if it is this answer."""
        view = self.streaming_view(message_id)
        if view is not None:
            view.append(text)
        elif self.is_last(message_id):
            self.rows[-1] = replace(self.rows[-1], content=self.rows[-1].content + text)

    def change(self, row: MessageRow) -> None:
        """More is known about the answer under way, not about its text."""
        if self.is_last(row.id):
            self.rows[-1] = row
            view = self.streaming_view(row.id)
            if view is not None:
                view.row = row
            self._show_boundary()

    def finish(self, row: MessageRow) -> None:
        """The last answer has ended as `row` says."""
        if self.is_last(row.id):
            self.rows[-1] = row
            view = self.streaming_view(row.id)
            if view is not None:
                view.finish(row)
            self._show_boundary()

    def show_end(self) -> None:
        """Lay out the last message, if it is not."""
        if not self.reaches_end:
            self._lay_out(len(self.rows) - 1)

    @Slot()
    def show_earlier(self) -> None:
        """Lay out one page more above."""
        self.asked_earlier.emit()
        last, self._first = self._first, max(0, self._first - PAGE)
        for index, row in enumerate(self.rows[self._first : last]):
            self._insert(row, index)
        self._after_change()

    @Slot()
    def show_later(self) -> None:
        """Lay out one page more below."""
        self.asked_later.emit()
        end = self._first + len(self.views)
        for row in self.rows[end : end + PAGE]:
            self._insert(row, len(self.views))
        self._after_change()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the bubbles when the column gets another width."""
        super().resizeEvent(event)
        for view in self.views:
            self._fit(view)

    def _lay_out(self, place: int) -> None:
        """Show the messages around a place in the conversation at once, and soon the page around them."""
        for view in self.views:
            self._discard(view)
        count = len(self.rows)
        start = max(0, min(place - PAGE // 2, count - PAGE))
        self._page = range(start, min(start + PAGE, count))
        first = first_rows([len(row.content) for row in self.rows], place)
        self.views, self._first = [], first.start
        for row in self.rows[first.start : first.stop]:
            self._insert(row, len(self.views))
        self._after_change()
        self._fill_timer.start()

    @Slot()
    def _fill(self) -> None:
        """Lay out one message more on either side, until the page is whole."""
        end = self._first + len(self.views)
        earlier = self._first > self._page.start
        if end < min(self._page.stop, len(self.rows)):
            self._insert(self.rows[end], len(self.views))
        elif not earlier:
            self._fill_timer.stop()
            return
        if earlier:
            self.grows_above.emit()
            self._first -= 1
            self._insert(self.rows[self._first], 0)
        self._after_change()

    def _insert(self, row: MessageRow, index: int) -> None:
        view = make_view(row)
        view.action.connect(lambda action, message=row.id: self.action.emit(action, message))
        view.version_requested.connect(lambda message: self.action.emit(Action.SHOW_VERSION, message))
        view.edited.connect(lambda text, message=row.id: self.edited.emit(message, text))
        view.edit_changed.connect(lambda text, message=row.id: self._on_edit_changed(message, text))
        view.edit_discarded.connect(lambda text, message=row.id: self.edit_discarded.emit(message, text))
        self.views.insert(index, view)
        self._messages.insertWidget(1 + index, view)  # after the button for earlier messages
        self._fit(view)
        self._take_up_edit(view)

    def _take_up_edit(self, view: UserMessage | AssistantMessage) -> None:
        text = self._edits.get(view.row.id)
        if text is not None:
            view.go_on_editing(text)

    def _on_edit_changed(self, message_id: int, text: str) -> None:
        if text:
            self._edits[message_id] = text
        else:
            self._edits.pop(message_id, None)
        self.edit_changed.emit(message_id, text)

    def _fit(self, view: UserMessage | AssistantMessage) -> None:
        if isinstance(view, UserMessage):
            view.fit(self.width())

    def _after_change(self) -> None:
        later = len(self.rows) - self._first - len(self.views)
        self.earlier.setVisible(self._first > 0)
        self.earlier.setText(tr("Show earlier messages ({n})", n=self._first))
        self.later.setVisible(later > 0)
        self.later.setText(tr("Show later messages ({n})", n=later))
        for view in self.views:
            view.set_last(view is self.views[-1] and not later)
        self._show_boundary()

    def _show_boundary(self) -> None:
        boundary = boundary_of(self.rows)
        for view in self.views:
            view.show_boundary(view.row.id == boundary)

    def _discard(self, view: UserMessage | AssistantMessage) -> None:
        if isinstance(view, AssistantMessage) and view.streaming and self.is_last(view.row.id):
            self.rows[-1] = replace(view.row, content=view.content())  # for when it is laid out again
        self._messages.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _focused(self) -> tuple[int, str] | None:
        """The message (its place) and the name of the button in it that has the keyboard."""
        widget = self.focusWidget()
        if not isinstance(widget, QToolButton) or not widget.hasFocus():
            return None
        for place, view in enumerate(self.views, self._first):
            if view.isAncestorOf(widget):
                return place, widget.accessibleName()
        return None

    def _focus_again(self, focused: tuple[int, str] | None) -> None:
        """Who turns over versions by the keyboard goes on where they were, though the message is another."""
        if focused is None:
            return
        place, name = focused[0] - self._first, focused[1]
        buttons = self.views[place].findChildren(QToolButton) if 0 <= place < len(self.views) else []
        usable = [button for button in buttons if button.isEnabled() and not button.isHidden()]
        usable.sort(key=lambda button: button.accessibleName() != name)
        if usable:
            usable[0].setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.focus_lost.emit()
