"""Where the user writes: the field with its files, what waits, and a line that says what can be done."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.attachments.field import AttachmentField
from app.attachments.form import compose, parse
from app.chat.notice_bar import NoticeBar
from app.chat.notices import MessageNotice
from app.composer.count import Counted
from app.composer.edit import MessageEdit
from app.composer.long_paste import PasteOffer
from app.composer.next_bar import NextMessageBar
from app.composer.room import explanation, line
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.announce import announce

_SIDE, _GAP = 9, 6  # pixels: left and right of everything, and between what stands in the line below the text
_HINT_CHARACTERS = 24  # the hint is not squeezed into less


class ComposerState(Enum):
    """What the button does."""

    READY = "ready"  # sends
    GENERATING = "generating"  # stops; a message can wait for the answer's end
    UNAVAILABLE = "unavailable"  # nothing: there is no model yet


class Composer(QFrame):
    """`content` is the message as it is saved, with its files; `text` what is typed."""

    send_requested = Signal(str)  # the content
    wait_requested = Signal(str)  # the same, while an answer is being written
    stop_requested = Signal()
    changed = Signal()  # the content, by whomever

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, composer=True, focused=False)
        self._state = ComposerState.UNAVAILABLE
        self._reason = ""
        self._filling = False
        self.edit = MessageEdit()
        self.files = AttachmentField()
        self.waiting = NextMessageBar()
        self.offer = PasteOffer()
        self.notice = NoticeBar(dismissable=True)  # why the message cannot be sent
        self._hint = QLabel()
        self._hint.setWordWrap(True)
        self._tokens = QLabel()
        self._tokens.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for label in (self._hint, self._tokens):
            mark(label, muted=True)
            theme().scale_font(label, 0.88)
        self.attach_button = _round("attach", tr("Attach text files"), quiet=True)
        self.wait_button = _round("later", tr("Send when the answer has ended"), quiet=True)
        self.button = _round("arrow-up", tr("Send"))
        self._lay_out()
        self._connect()
        self.setFocusProxy(self.edit)
        self.installEventFilter(self)
        self._refresh()

    @property
    def state(self) -> ComposerState:
        """What the button does now."""
        return self._state

    @property
    def text(self) -> str:
        """What is typed but not sent."""
        return self.edit.toPlainText()

    @property
    def content(self) -> str:
        """The same with the files."""
        return compose(self.files.files, self.text)

    @property
    def hint(self) -> str:
        """The line below the text field."""
        return self._hint.text()

    @property
    def token_text(self) -> str:
        """How many tokens there are, in words; empty while it is not known."""
        return "" if self._tokens.isHidden() else self._tokens.text()

    def set_text(self, text: str) -> None:
        """Replace the text, not the files; not undoable."""
        self.edit.show_text(text)

    def set_content(self, content: str) -> None:
        """Replace text and files, as when another chat with a draft is opened."""
        parts = parse(content)
        self._filling = True
        self.offer.withdraw()
        self.files.set_files(parts.attachments)
        self.edit.show_text(parts.text)
        self._filling = False
        self._on_changed()

    def set_send_on_enter(self, enabled: bool) -> None:
        """Whether Enter sends, or only Ctrl+Enter."""
        self.edit.send_on_enter = enabled
        self._refresh()

    def set_state(self, state: ComposerState, reason: str = "") -> None:
        """Change what the button does; `reason` says why nothing can be sent now."""
        self._state, self._reason = state, reason
        self._refresh()

    def show_waiting(self, message: str) -> None:
        """Show the message that is sent when the answer has ended; empty for none."""
        self.waiting.show_message(message)
        self._refresh()
        if message:
            announce(self.edit, self.waiting.text.text())

    def refuse(self, why: str) -> None:
        """Say why what is written was not sent; empty for nothing. Goes when something is changed."""
        self.notice.show_notice(MessageNotice("warning", why) if why else None)
        if why:
            announce(self.edit, why)

    def show_count(self, counted: Counted | None) -> None:
        """Say how much of the context there would be to read; None where it is not known."""
        self._tokens.setVisible(counted is not None)
        if counted is None:
            self._share_line()
            return
        room = counted.room
        wrong = not room.fits or room.scarce
        text = line(room)
        self._tokens.setText(f"⚠ {text}" if wrong else text)
        self._tokens.setAccessibleName(text)
        self._tokens.setToolTip(explanation(room))
        mark(self._tokens, muted=not wrong, tone="warning" if wrong else "")
        self.files.show_tokens(counted.files)
        self._share_line()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click anywhere in the frame is meant for the text field."""
        if watched is self and event.type() is QEvent.Type.MouseButtonPress:
            self.edit.setFocus(Qt.FocusReason.MouseFocusReason)
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Divide the line below the text anew."""
        super().resizeEvent(event)
        self._share_line()

    def _share_line(self) -> None:
        """Without room for it, the hint goes, if it only says what Enter does; the count takes two lines."""
        buttons = (self.attach_button, self.wait_button, self.button)
        taken = sum(button.sizeHint().width() + _GAP for button in buttons if not button.isHidden())
        if not self._tokens.isHidden():
            taken += self._tokens.fontMetrics().horizontalAdvance(self._tokens.text()) + _GAP
        left = self.contentsRect().width() - 2 * _SIDE - taken
        narrow = left < self._hint.fontMetrics().averageCharWidth() * _HINT_CHARACTERS
        self._hint.setVisible(not (narrow and self._state is ComposerState.READY))
        self._tokens.setWordWrap(narrow)

    def _lay_out(self) -> None:
        bottom = QHBoxLayout()
        bottom.setSpacing(_GAP)
        bottom.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        bottom.addWidget(self._hint, 1)
        bottom.addWidget(self._tokens)
        bottom.addWidget(self.wait_button, 0, Qt.AlignmentFlag.AlignBottom)
        bottom.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(_SIDE, 9, _SIDE, 8)
        column.setSpacing(6)
        for part in (self.waiting, self.notice, self.offer, self.files):
            column.addWidget(part)
        field = QHBoxLayout()
        field.setContentsMargins(7, 4, 0, 0)
        field.addWidget(self.edit)
        column.addLayout(field)
        column.addLayout(bottom)

    def _connect(self) -> None:
        edit, files = self.edit, self.files
        edit.submitted.connect(self._submit)
        edit.textChanged.connect(self._on_changed)
        edit.focus_changed.connect(lambda focused: mark(self, focused=focused))
        edit.files_pasted.connect(files.add_paths)
        edit.long_pasted.connect(self.offer.offer)
        edit.huge_pasted.connect(files.add_text)
        files.changed.connect(self._on_changed)
        files.left.connect(lambda: edit.setFocus(Qt.FocusReason.OtherFocusReason))
        self.offer.accepted.connect(self._attach_pasted)
        self.attach_button.clicked.connect(lambda: files.ask())
        self.wait_button.clicked.connect(self._submit)
        self.button.clicked.connect(self._press)

    def _submit(self) -> None:
        content = compose(self.files.files, self.text.strip())
        if not content:
            return
        if self.files.asks_to_wait():
            return
        if self._state is ComposerState.READY:
            self.send_requested.emit(content)
        elif self._state is ComposerState.GENERATING:
            self.wait_requested.emit(content)

    def _press(self) -> None:
        if self._state is ComposerState.GENERATING:
            self.stop_requested.emit()
        else:
            self._submit()

    def _attach_pasted(self, text: str) -> None:
        self.files.add_text(text)
        self.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_changed(self) -> None:
        if self._filling:
            return
        self.offer.text_changed()
        self.refuse("")
        self._refresh()
        self.changed.emit()

    def _refresh(self) -> None:
        written = bool(self.text.strip() or self.files.files)
        generating = self._state is ComposerState.GENERATING
        hint = self._hint_text(written)
        self._hint.setText(hint)
        self.edit.setAccessibleDescription(hint)
        name = tr("Stop") if generating else tr("Send")
        theme().set_icon(self.button, "stop" if generating else "arrow-up", "on_accent")
        self.button.setToolTip(name)
        self.button.setAccessibleName(name)
        self.button.setEnabled(generating or (self._state is ComposerState.READY and written))
        self.wait_button.setVisible(generating and written and self.waiting.isHidden())
        self._share_line()

    def _hint_text(self, written: bool) -> str:
        if self._state is ComposerState.UNAVAILABLE:
            return self._reason
        enter = tr("Enter") if self.edit.send_on_enter else tr("Ctrl+Enter")
        if self._state is ComposerState.GENERATING:
            if written and not self.waiting.isHidden():
                return tr("A message waits already. Escape stops the answer.")
            if written:
                return tr(
                    "{enter} sends this when the answer has ended. Escape stops the answer.", enter=enter
                )
            return self._reason or tr("Writing the answer. Escape stops it.")
        if self.edit.send_on_enter:
            return tr("Enter sends, Shift+Enter begins a new line")
        return tr("Ctrl+Enter sends")


def _round(icon: str, name: str, *, quiet: bool = False) -> QToolButton:
    button = QToolButton()
    mark(button, round=not quiet)
    button.setIconSize(QSize(20, 20))
    button.setToolTip(name)
    button.setAccessibleName(name)
    theme().set_icon(button, icon, "muted" if quiet else "on_accent")
    return button
