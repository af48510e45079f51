"""A problem inside a page: what happened, why, what to do; copyable, and perhaps "Do it anyway"."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.errors import details_of
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.breaking_text import MOST_CHARACTERS, BreakingText
from app.widgets.buttons import push_button
from engine.errors import EngineError, ShortageError

_ICON = 28  # pixels at a zoom of 100 %


class ProblemText(QWidget):
    """The three sentences of an error beside a warning sign; `copy_details` is for a button near it.

    They often name files, and break anywhere: however long a path is, they fit into what the layout gives.
    """

    def __init__(self, parent: QWidget | None = None, *, most: int = MOST_CHARACTERS) -> None:
        super().__init__(parent)
        self._error: EngineError | None = None
        icon = self._icon = QLabel(self)
        icon.setAlignment(Qt.AlignmentFlag.AlignTop)
        icon.setAccessibleName(tr("Warning"))
        self._draw_icon()
        theme().changed.connect(self._draw_icon)
        self.what, self.why, self.action = (BreakingText(self, most=most) for _ in range(3))
        theme().scale_font(self.what, 1, bold=True)
        texts = QVBoxLayout()
        names = (tr("What happened"), tr("Why"), tr("What to do"))
        for label, name in zip((self.what, self.why, self.action), names, strict=True):
            label.setAccessibleName(name)
            texts.addWidget(label)
        texts.addStretch(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(layout.spacing() * 2)
        layout.addWidget(icon)
        layout.addLayout(texts, 1)

    def set_error(self, error: EngineError) -> None:
        """Show `error`."""
        self._error = error
        for label, text in ((self.what, error.what), (self.why, error.why), (self.action, error.action)):
            label.set_text(text)
            label.setVisible(bool(text))

    @Slot()
    def _draw_icon(self) -> None:
        size = round(_ICON * theme().scale)
        pixmap = theme().icon("warning", "warning").pixmap(QSize(size, size), self.devicePixelRatio())
        self._icon.setPixmap(pixmap)

    @Slot()
    def copy_details(self) -> None:
        """Put the whole message, with technical details if there are any, on the clipboard."""
        if self._error is not None:
            QGuiApplication.clipboard().setText(details_of(self._error))


class ProblemBox(QFrame):
    """A problem in a frame. Invisible while there is none. `anyway` is emitted by "Do it anyway"."""

    anyway = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, notice="warning")
        self.text = ProblemText(self)
        self.copy = push_button(tr("Copy details"), self.text.copy_details, self)
        self.do_anyway = push_button(tr("Do it anyway"), self.anyway.emit, self)
        self.do_anyway.setToolTip(tr("Goes on although something is missing: it may be very slow, or fail."))
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.copy)
        buttons.addWidget(self.do_anyway)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.addWidget(self.text)
        layout.addLayout(buttons)
        self.hide()

    def show_problem(self, error: EngineError | None) -> None:
        """Show `error`, or nothing."""
        if error is not None:
            self.text.set_error(error)
            self.do_anyway.setVisible(isinstance(error, ShortageError))
            self.setAccessibleName(error.what)
            self.setAccessibleDescription(str(error))
        self.setVisible(error is not None)
