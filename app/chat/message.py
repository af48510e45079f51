"""One message of a conversation with everything around its text: who, state, actions, figures."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.chat.body import MessageBody
from app.chat.code import CopyButton
from app.chat.notice_bar import NoticeBar
from app.chat.notices import Action, figures_line, figures_tip, notice_for
from app.chat.text_area import PlainArea
from app.i18n import tr
from app.storage.rows import MessageRow, MessageState
from app.theme import mark, theme
from app.widgets.elided import ElidedText
from engine.events import PromptProgress

BUBBLE_SHARE = 0.82  # of the column's width, at most


class MessageView(QWidget):
    """The part that both roles share: the saved row and a strip about how it ended."""

    action = Signal(str)  # an `Action`

    def __init__(self, row: MessageRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row = row
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)

    def content(self) -> str:
        """The message as text, for the clipboard."""
        return self.row.content

    def set_last(self, last: bool) -> None:
        """Whether this is the last message: only that can be regenerated."""


class UserMessage(MessageView):
    """What the user wrote: a bubble on the right, exactly as typed."""

    def __init__(self, row: MessageRow, parent: QWidget | None = None) -> None:
        super().__init__(row, parent)
        self.setAccessibleName(tr("You wrote"))
        self._text = PlainArea(row.content)
        self._bubble = QFrame()
        mark(self._bubble, bubble=True)
        inner = self._inner = QVBoxLayout(self._bubble)
        inner.setContentsMargins(14, 8, 14, 5)  # lines have their air above the letters
        inner.addWidget(self._text)
        copy = CopyButton(self.content, tr("Copy message"))
        line = QHBoxLayout()
        line.addStretch(1)
        line.addWidget(copy, 0, Qt.AlignmentFlag.AlignBottom)
        line.addWidget(self._bubble)
        self._column.addLayout(line)
        self._available = 0  # pixels: the column's width
        theme().changed.connect(self._render_again)

    def _render_again(self) -> None:
        self._text.render_again()
        self.fit(self._available)

    def fit(self, width: int) -> None:
        """Be as wide as the text needs, within a column of `width` pixels."""
        self._available = width
        margins = self._inner.contentsMargins()
        around = margins.left() + margins.right()
        widest = int(width * BUBBLE_SHARE) - around
        self._text.setFixedWidth(max(24, min(self._text.natural_width, widest)))


class AssistantMessage(MessageView):
    """The model's answer: Markdown over the whole column, then actions and figures."""

    def __init__(self, row: MessageRow, parent: QWidget | None = None) -> None:
        super().__init__(row, parent)
        self.setAccessibleName(tr("Answer of {model}", model=row.model or tr("the model")))
        self._text: list[str] = [row.content]
        self._last = False
        self._body = MessageBody()
        self._waiting = QLabel()
        mark(self._waiting, muted=True)
        self._notice = NoticeBar()
        self._notice.triggered.connect(self.action)
        self._copy = CopyButton(self.content, tr("Copy answer"))
        self._redo = QToolButton()
        self._redo.setToolTip(tr("Regenerate this answer"))
        self._redo.setAccessibleName(tr("Regenerate this answer"))
        self._redo.clicked.connect(lambda: self.action.emit(Action.REGENERATE))
        theme().set_icon(self._redo, "redo", "muted")
        self._figures = ElidedText()
        mark(self._figures, muted=True)
        footer = QHBoxLayout()
        footer.setContentsMargins(0, 0, 0, 0)
        footer.setSpacing(2)
        footer.addWidget(self._copy)
        footer.addWidget(self._redo)
        footer.addSpacing(6)
        footer.addWidget(self._figures, 1)
        for widget in (self._waiting, self._body, self._notice):
            self._column.addWidget(widget)
        self._column.addLayout(footer)
        self._body.append(row.content)
        if row.state is MessageState.STREAMING:
            self._waiting.setText(tr("Getting ready to answer…"))
            self._waiting.setVisible(not row.content)
        else:
            self._body.finish()
            self._waiting.hide()
        self._show_end()

    @property
    def body(self) -> MessageBody:
        """The area of the text."""
        return self._body

    @property
    def notice(self) -> NoticeBar:
        """The strip about how the answer ended; hidden when it simply ended."""
        return self._notice

    @property
    def streaming(self) -> bool:
        """Whether the answer is being written now."""
        return self.row.state is MessageState.STREAMING

    def content(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def append(self, text: str) -> None:
        """Add streamed text."""
        self._text.append(text)
        self._waiting.hide()
        self._body.append(text)

    def show_prompt_progress(self, progress: PromptProgress) -> None:
        """Say how much of the conversation the model has read, until the first word comes."""
        if progress.done < progress.total:
            percent = 100 * progress.done // max(1, progress.total)
            self._waiting.setText(tr("Reading the conversation: {percent}%", percent=percent))
        else:
            self._waiting.setText(tr("Thinking of the first word…"))

    def finish(self, row: MessageRow) -> None:
        """The answer has ended as `row` says."""
        self.row = row
        self._body.finish()
        self._waiting.hide()
        self._show_end()

    def set_last(self, last: bool) -> None:
        """Offer to regenerate the last answer only."""
        self._last = last
        self._show_end()

    def _show_end(self) -> None:
        ended = not self.streaming
        self._notice.show_notice(notice_for(self.row) if ended else None, offer=self._last)
        self._copy.setVisible(ended)
        self._redo.setVisible(ended and self._last)
        self._figures.setText(figures_line(self.row) if ended else "")
        self._figures.setToolTip(figures_tip(self.row) if ended else "")


def make_view(row: MessageRow) -> UserMessage | AssistantMessage:
    """The view for a message's role."""
    return UserMessage(row) if row.role == "user" else AssistantMessage(row)
