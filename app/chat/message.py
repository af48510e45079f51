"""One message of a conversation with everything around its text: who, state, actions, figures."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.attachments.chips import ChipRow
from app.attachments.form import parse
from app.chat.body import MessageBody
from app.chat.message_view import MessageView, answer_words, question_words
from app.chat.notice_bar import NoticeBar
from app.chat.notices import figures_line, figures_tip, notice_for
from app.chat.text_area import PlainArea
from app.i18n import tr, tr_count
from app.storage.rows import MessageRow, MessageState
from app.theme import mark, theme
from app.widgets.announce import announce
from app.widgets.elided import ElidedText
from engine.events import PromptProgress

BUBBLE_SHARE = 0.82  # of the column's width, at most


class UserMessage(MessageView):
    """What the user wrote: a bubble on the right, the text exactly as typed, attached files as chips."""

    def __init__(self, row: MessageRow, parent: QWidget | None = None) -> None:
        super().__init__(row, question_words(), parent)
        self.setAccessibleName(tr("You wrote"))
        parts = parse(row.content)
        self._files = ChipRow(removable=False)
        self._text = PlainArea(parts.text)
        self._bubble = QFrame()
        mark(self._bubble, bubble=True)
        inner = self._inner = QVBoxLayout(self._bubble)
        inner.setContentsMargins(14, 8, 14, 5)  # lines have their air above the letters
        inner.setSpacing(6)
        inner.addWidget(self._files)
        inner.addWidget(self._text)
        self._files.show_files(parts.attachments)  # in its place by now: else it would be a window
        if parts.attachments and not parts.text:
            self._text.hide()
        for part in (self._bubble, self.tools):
            self._column.addWidget(part, 0, Qt.AlignmentFlag.AlignRight)
        self._column.setSpacing(2)
        self.tools.show_row(row, last=False)
        self._available = 0  # pixels: the column's width
        theme().changed.connect(self._render_again)

    def _render_again(self) -> None:
        self._text.render_again()
        self.fit(self._available)

    def _show_parts(self, shown: bool) -> None:
        super()._show_parts(shown)
        self._bubble.setVisible(shown)

    def fit(self, width: int) -> None:
        """Be as wide as the text needs, within a column of `width` pixels."""
        self._available = width
        margins = self._inner.contentsMargins()
        around = margins.left() + margins.right()
        widest = int(width * BUBBLE_SHARE) - around
        wanted = max(self._text.natural_width, self._files.natural_width)
        inside = max(24, min(wanted, widest))
        self._text.setFixedWidth(inside)
        if self._files.chips:
            self._files.setFixedSize(inside, self._files.heightForWidth(inside))


class AssistantMessage(MessageView):
    """The model's answer: Markdown over the whole column, then actions and figures."""

    def __init__(self, row: MessageRow, parent: QWidget | None = None) -> None:
        super().__init__(row, answer_words(), parent)
        self.setAccessibleName(tr("Answer of {model}", model=row.model or tr("the model")))
        self._text: list[str] = [row.content]
        self._last = False
        self._searching = False  # a beam search tells how far it is below the text that is certain
        self._body = MessageBody()
        self._waiting = QLabel()
        mark(self._waiting, muted=True)
        self._notice = NoticeBar()
        self._notice.triggered.connect(self.action)
        self._figures = ElidedText()
        mark(self._figures, muted=True)
        footer = QHBoxLayout()
        footer.setContentsMargins(0, 0, 0, 0)
        footer.setSpacing(2)
        footer.addWidget(self.tools)
        footer.addSpacing(6)
        footer.addWidget(self._figures, 1)
        for widget in (self._body, self._waiting, self._notice):
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
        if not self._searching:
            self._waiting.hide()
        self._body.append(text)

    def show_prompt_progress(self, progress: PromptProgress) -> None:
        """Say how much of the conversation the model has read, until the first word comes."""
        if progress.done < progress.total:
            percent = 100 * progress.done // max(1, progress.total)
            self._waiting.setText(tr("Reading the conversation: {percent}%", percent=percent))
        else:
            self._waiting.setText(tr("Thinking of the first word…"))

    def show_search(self, beams: int, tokens: int) -> None:
        """Say how far a beam search is, whose text appears only as far as all beams agree."""
        self._searching = True
        text = tr_count(
            "Following {n} beginnings at once, {count} token so far…",
            "Following {n} beginnings at once, {count} tokens so far…",
            tokens,
            n=beams,
        )
        self._waiting.setText(text)
        self._waiting.show()

    def show_remaining(self, answers: int) -> None:
        """This answer has ended, and so many others to the same question are still being written."""
        self._waiting.setText(
            tr_count(
                "{count} more answer is being written…", "{count} more answers are being written…", answers
            )
        )
        self._waiting.setVisible(answers > 0)

    def finish(self, row: MessageRow) -> None:
        """The answer has ended as `row` says."""
        self.row = row
        self._body.finish()
        self._waiting.hide()
        self._show_end()
        if self._notice.text:
            announce(self, self._notice.text)

    def set_last(self, last: bool) -> None:
        """Offer to regenerate and to continue at the last answer only; the menu has the former anywhere."""
        if last != self._last:
            self._last = last
            self._show_end()

    def _show_parts(self, shown: bool) -> None:
        super()._show_parts(shown)
        self._body.setVisible(shown)
        self._figures.setVisible(shown)

    def _show_end(self) -> None:
        ended = not self.streaming
        self._notice.show_notice(notice_for(self.row) if ended else None, offer=self._last)
        self.tools.show_row(self.row, last=self._last)
        self._figures.setText(figures_line(self.row) if ended else "")
        self._figures.setToolTip(figures_tip(self.row) if ended else "")


def make_view(row: MessageRow) -> UserMessage | AssistantMessage:
    """The view for a message's role."""
    return UserMessage(row) if row.role == "user" else AssistantMessage(row)
