"""A code block of a message: its language, a button that copies it, its lines in colours."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.chat.aside import run_aside
from app.chat.code_lexer import CodeLexer, language_name
from app.chat.code_view import CodeView
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.announce import announce
from app.widgets.errand import Errand

log = logging.getLogger(__name__)

COPIED_MS = 1500


class CodeArea(QFrame):
    """Shows code as it is; while it streams in, lines are only ever appended, and only they are coloured."""

    def __init__(self, language: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, code=True)
        name = language_name(language)
        self._shown = ""
        self._lexer = CodeLexer(language)
        self._label = QLabel(name or tr("Code"))
        self._label.setTextFormat(Qt.TextFormat.PlainText)  # the model may have written anything there
        mark(self._label, muted=True)
        self._copy = CopyButton(lambda: self._shown, tr("Copy this code"))
        self._view = CodeView(self._lexer.spans)
        self._view.setAccessibleName(tr("Code in {language}", language=name) if name else tr("Code"))
        header = QHBoxLayout()
        header.setContentsMargins(12, 3, 4, 0)
        header.addWidget(self._label, 1)
        header.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 6)
        layout.setSpacing(0)
        layout.addLayout(header)
        layout.addWidget(self._view)
        self._more = QTimer(self)  # colours what is left, a portion at a time
        self._more.setSingleShot(True)
        self._more.timeout.connect(self._color)
        self._loading = False
        self.render_again()

    @property
    def code(self) -> str:
        """The code shown."""
        return self._shown

    @property
    def label(self) -> str:
        """The language as it is shown."""
        return self._label.text()

    @property
    def view(self) -> CodeView:
        """The code's text."""
        return self._view

    def set_code(self, code: str) -> None:
        """Show `code`; what is already shown stays untouched if the new text continues it."""
        if code == self._shown:
            return
        if code.startswith(self._shown):
            self._view.append_text(code[len(self._shown) :])
        else:
            self._lexer = CodeLexer(self._lexer.language)
            self._view.look_up(self._lexer.spans)
            self._view.replace_text(code)
        self._shown = code
        if self._lexer.is_ready():
            if not self._more.isActive():
                self._color()
        elif not self._loading:
            self._loading = True
            run_aside(self._lexer.load, self._on_loaded)

    def settle(self) -> None:
        """The code is complete: colour it once as a whole, as some patterns need to see the end of a text."""
        self._lexer = CodeLexer(self._lexer.language)
        self._view.look_up(self._lexer.spans)
        if self._lexer.is_ready():
            self._more.start(0)

    def render_again(self) -> None:
        """Take over the theme's new colours and font."""
        self._view.restyle()

    def _on_loaded(self, errand: Errand[None]) -> None:
        if errand.error is not None:  # the code stays as it is shown, without colours
            log.error("The rules for %s cannot be read", self._lexer.language, exc_info=errand.error)
        else:
            self._color()

    def _color(self) -> None:
        first = self._lexer.read(self._shown)
        if first is not None:
            self._view.recolor(first, self._lexer.known)
            if not self._lexer.has_read(self._shown):
                self._more.start(0)


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
        announce(self, tr("Copied"))
        self._timer.start()

    def _reset(self) -> None:
        theme().set_icon(self, "copy", "muted")
        self.setToolTip(self._name)
        self.setAccessibleName(self._name)
