"""A code block of a message: its language, a button that copies it, long lines scroll sideways."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark, monospace, theme

COPIED_MS = 1500


class CodeArea(QFrame):
    """Shows code as it is; while it streams in, lines are only ever appended."""

    def __init__(self, language: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, code=True)
        self._shown = ""
        self._label = QLabel(language or tr("Code"))
        mark(self._label, muted=True)
        self._copy = CopyButton(lambda: self._shown, tr("Copy this code"))
        self._view = _CodeView()
        self._view.setAccessibleName(tr("Code in {language}", language=language) if language else tr("Code"))
        header = QHBoxLayout()
        header.setContentsMargins(12, 3, 4, 0)
        header.addWidget(self._label, 1)
        header.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 6)
        layout.setSpacing(0)
        layout.addLayout(header)
        layout.addWidget(self._view)
        self.render_again()

    @property
    def code(self) -> str:
        """The code shown."""
        return self._shown

    def set_code(self, code: str) -> None:
        """Show `code`; what is already shown stays untouched if the new text continues it."""
        if code.startswith(self._shown):
            cursor = QTextCursor(self._view.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(code[len(self._shown) :])
        else:
            self._view.setPlainText(code)
        self._shown = code
        self._view.fit()

    def render_again(self) -> None:
        """Take over the theme's new colours and font."""
        self._view.setFont(monospace())
        self._view.fit()


class CopyButton(QToolButton):
    """Copies a text to the clipboard and says so with a check mark."""

    def __init__(self, text: Callable[[], str], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._name = name
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setAutoRaise(True)
        theme().set_icon(self, "copy", "muted")
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(COPIED_MS)
        self._timer.timeout.connect(self._reset)
        self.clicked.connect(self.copy)

    def copy(self) -> None:
        """Copy now."""
        QGuiApplication.clipboard().setText(self._text())
        theme().set_icon(self, "check", "accent")
        self.setToolTip(tr("Copied"))
        self.setAccessibleName(tr("Copied"))
        self._timer.start()

    def _reset(self) -> None:
        theme().set_icon(self, "copy", "muted")
        self.setToolTip(self._name)
        self.setAccessibleName(self._name)


class _CodeView(QPlainTextEdit):
    """As high as its lines; scrolls sideways only."""

    def __init__(self) -> None:
        super().__init__()
        mark(self, bare=True, code=True)
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(12, 2, 12, 2)
        self.viewport().setAutoFillBackground(False)
        self.horizontalScrollBar().rangeChanged.connect(self.fit)

    def fit(self) -> None:
        """Take the height of the lines and of the scroll bar, if there is one."""
        bar = self.horizontalScrollBar()
        height = self.blockCount() * self.fontMetrics().lineSpacing() + 6
        if bar.maximum() > 0:
            height += bar.sizeHint().height()
        if height != self.height():
            self.setFixedHeight(height)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the vertical wheel to the conversation."""
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()
