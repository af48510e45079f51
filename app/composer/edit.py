"""The field in which a message is written: grows with it, Enter sends, files and long texts are told of."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.mime import local_files
from app.widgets.wrapping import wrap_mode

MAX_LINES = 9
LONG_PASTE = 4_000  # characters; longer texts are better attached
HUGE_PASTE = 100_000  # the same; these are always attached: the field would stand still for seconds


class MessageEdit(QPlainTextEdit):
    """The text field. Enter sends unless an input method is composing; Shift+Enter makes a new line.

    Files that are dropped are left to the window.
    """

    submitted = Signal()
    focus_changed = Signal(bool)
    files_pasted = Signal(object)  # list of Path
    long_pasted = Signal(object)  # QTextCursor: the text that was pasted, selected
    huge_pasted = Signal(str)  # a text that was not put into the field

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, bare=True)
        self.send_on_enter = True
        self.takes_files = True  # whether files and huge texts that are pasted are attached
        # Up in the first line (-1) or Down in the last (1); whether something was shown instead of the text.
        self.call_back: Callable[[int], bool] = lambda step: False
        self._composing = False
        self._fitting = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setPlaceholderText(tr("Write a message"))
        self.setAccessibleName(tr("Message"))
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self.fit)
        self.fit()

    def show_text(self, text: str) -> None:
        """Replace the text; not undoable."""
        if text != self.toPlainText():
            self.setWordWrapMode(wrap_mode(text))
            self.setPlainText(text)
            self.moveCursor(QTextCursor.MoveOperation.End)

    def fit(self) -> None:
        """Take the height of the text, up to `MAX_LINES` lines."""
        if self._fitting:
            return  # laying lines out tells of a new size
        self._fitting = True
        block = self.document().firstBlock()
        for _ in range(MAX_LINES):  # lines are counted once they are laid out, which painting does too late
            if block.isValid():
                self.blockBoundingRect(block)
                block = block.next()
        self._fitting = False
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
        """Files can be pasted, too."""
        return (self.takes_files and bool(local_files(source))) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Tell of files instead of inserting their addresses, and of texts that are long."""
        files = local_files(source) if self.takes_files else []
        if files:
            self.files_pasted.emit(files)
            return
        if self.takes_files and len(source.text()) > HUGE_PASTE:
            self.huge_pasted.emit(source.text())
            return
        start = self.textCursor().selectionStart()
        self.setWordWrapMode(wrap_mode(self.toPlainText() + source.text()))
        super().insertFromMimeData(source)
        if self.textCursor().position() - start > LONG_PASTE:
            pasted = QTextCursor(self.document())
            pasted.setPosition(start)
            pasted.setPosition(self.textCursor().position(), QTextCursor.MoveMode.KeepAnchor)
            pasted.setKeepPositionOnInsert(True)  # what is written behind it is not part of it
            self.long_pasted.emit(pasted)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Leave files to the window."""
        if local_files(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Leave files to the window."""
        if local_files(event.mimeData()):
            event.ignore()
        else:
            super().dragMoveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        """Leave files to the window."""
        if local_files(event.mimeData()):
            event.ignore()
        else:
            super().dropEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send on Enter (or on Ctrl+Enter if the user prefers that); call messages back with Up and Down."""
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not self._composing:
            self._enter(event)
        elif not (key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._called_back(event)):
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit again: the lines are others."""
        super().resizeEvent(event)
        self.fit()

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

    def _enter(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        control = modifiers == Qt.KeyboardModifier.ControlModifier
        if control or (self.send_on_enter and modifiers == Qt.KeyboardModifier.NoModifier):
            self.submitted.emit()
        else:
            self.insertPlainText("\n")
            self.ensureCursorVisible()

    def _called_back(self, event: QKeyEvent) -> bool:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        cursor = self.textCursor()
        if modifiers != Qt.KeyboardModifier.NoModifier or self._composing or cursor.hasSelection():
            return False
        block = cursor.block()
        line = block.layout().lineForTextPosition(cursor.positionInBlock()).lineNumber()
        if event.key() == Qt.Key.Key_Up:
            return block.blockNumber() == 0 and line <= 0 and self.call_back(-1)
        last = block.blockNumber() == self.blockCount() - 1 and line >= block.layout().lineCount() - 1
        return last and self.call_back(1)
