"""Where the user writes: grows with the text, Enter sends, one button sends or stops."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.importing.drop import importable
from app.theme import mark, theme

MAX_LINES = 9


class ComposerState(Enum):
    """What the button does."""

    READY = "ready"  # sends
    GENERATING = "generating"  # stops
    UNAVAILABLE = "unavailable"  # nothing: there is no model yet


class MessageEdit(QPlainTextEdit):
    """The text field. Enter sends unless an input method is composing; Shift+Enter makes a new line."""

    submitted = Signal()
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, bare=True)
        self.send_on_enter = True
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setPlaceholderText(tr("Write a message"))
        self.setAccessibleName(tr("Message"))
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self.fit)
        self.fit()

    def fit(self) -> None:
        """Take the height of the text, up to `MAX_LINES` lines."""
        # The layout of a plain text edit measures its height in lines.
        lines = max(1, int(self.document().size().height()))
        height = min(lines, MAX_LINES) * self.fontMetrics().lineSpacing() + 4
        bar = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            bar.ScrollBarAsNeeded if lines > MAX_LINES else bar.ScrollBarAlwaysOff
        )
        if height != self.height():
            self.setFixedHeight(height)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether a character is being composed: its Enter belongs to the input method."""
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Leave files with chats to the window, which imports them."""
        return not importable(source) and super().canInsertFromMimeData(source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send on Enter (or on Ctrl+Enter if the user prefers that)."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter) or self._composing:
            super().keyPressEvent(event)
            return
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        control = modifiers == Qt.KeyboardModifier.ControlModifier
        if control or (self.send_on_enter and modifiers == Qt.KeyboardModifier.NoModifier):
            self.submitted.emit()
        else:
            self.insertPlainText("\n")
            self.ensureCursorVisible()

    def changeEvent(self, event: QEvent) -> None:
        """Fit again when the font changes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Let the frame show the focus."""
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Let the frame show that the focus has gone."""
        super().focusOutEvent(event)
        self.focus_changed.emit(False)


class Composer(QFrame):
    """The text field in its frame, with the button and a line that says what can be done."""

    send_requested = Signal(str)
    stop_requested = Signal()
    text_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, composer=True, focused=False)
        self._state = ComposerState.UNAVAILABLE
        self._reason = ""
        self.edit = MessageEdit()
        self.edit.submitted.connect(self._submit)
        self.edit.textChanged.connect(self._on_text_changed)
        self.edit.focus_changed.connect(lambda focused: mark(self, focused=focused))
        self._hint = QLabel()
        mark(self._hint, muted=True)
        theme().scale_font(self._hint, 0.88)
        self._hint.setWordWrap(True)
        self.button = QToolButton()
        mark(self.button, round=True)
        self.button.setIconSize(QSize(20, 20))
        self.button.clicked.connect(self._press)
        bottom = QHBoxLayout()
        bottom.addWidget(self._hint, 1)
        bottom.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 13, 9, 8)
        column.setSpacing(4)
        column.addWidget(self.edit)
        column.addLayout(bottom)
        self.setFocusProxy(self.edit)
        self.installEventFilter(self)
        self._refresh()

    @property
    def state(self) -> ComposerState:
        """What the button does now."""
        return self._state

    @property
    def text(self) -> str:
        """What is written but not sent."""
        return self.edit.toPlainText()

    @property
    def hint(self) -> str:
        """The line below the text field."""
        return self._hint.text()

    def set_text(self, text: str) -> None:
        """Replace the text, as when another chat with a draft is opened; not undoable."""
        if text != self.text:
            self.edit.setPlainText(text)
            cursor = self.edit.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            self.edit.setTextCursor(cursor)

    def set_send_on_enter(self, enabled: bool) -> None:
        """Whether Enter sends, or only Ctrl+Enter."""
        self.edit.send_on_enter = enabled
        self._refresh()

    def set_state(self, state: ComposerState, reason: str = "") -> None:
        """Change what the button does; `reason` says why nothing can be sent now."""
        self._state, self._reason = state, reason
        self._refresh()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click anywhere in the frame is meant for the text field."""
        if watched is self and event.type() is QEvent.Type.MouseButtonPress:
            self.edit.setFocus(Qt.FocusReason.MouseFocusReason)
        return super().eventFilter(watched, event)

    def _submit(self) -> None:
        text = self.text.strip()
        if self._state is ComposerState.READY and text:
            self.send_requested.emit(text)

    def _press(self) -> None:
        if self._state is ComposerState.GENERATING:
            self.stop_requested.emit()
        else:
            self._submit()

    def _on_text_changed(self) -> None:
        self._refresh_button()
        self.text_changed.emit(self.text)

    def _refresh(self) -> None:
        if self._state is ComposerState.UNAVAILABLE:
            hint = self._reason
        elif self._state is ComposerState.GENERATING:
            hint = self._reason or tr("Writing the answer. Escape stops it.")
        elif self.edit.send_on_enter:
            hint = tr("Enter sends, Shift+Enter begins a new line")
        else:
            hint = tr("Ctrl+Enter sends")
        self._hint.setText(hint)
        self.edit.setAccessibleDescription(hint)
        self._refresh_button()

    def _refresh_button(self) -> None:
        generating = self._state is ComposerState.GENERATING
        name = tr("Stop") if generating else tr("Send")
        theme().set_icon(self.button, "stop" if generating else "arrow-up", "on_accent")
        self.button.setToolTip(name)
        self.button.setAccessibleName(name)
        can_send = self._state is ComposerState.READY and bool(self.text.strip())
        self.button.setEnabled(generating or can_send)
