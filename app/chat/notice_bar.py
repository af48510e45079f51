"""A coloured strip with an icon, a sentence and at most one button, which is below it where it is narrow."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from app.chat.notices import MessageNotice
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.breaking_text import BreakingText
from app.widgets.folding import ButtonRow, FoldingLayout

_LEAST_CHARACTERS = 26  # of the text beside the button
_TONES = {"info": ("info", "muted"), "warning": ("warning", "warning"), "error": ("error", "error")}


def _names() -> dict[str, str]:
    """What the icons say to a screen reader."""
    return {"info": tr("Remark"), "warning": tr("Warning"), "error": tr("Error")}


class NoticeBar(QFrame):
    """Hidden until it has something to say. Every answer has one, so its parts are made when it has."""

    triggered = Signal(str)  # the notice's action
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None, *, dismissable: bool = False) -> None:
        super().__init__(parent)
        self._action = ""
        self._dismissable = dismissable
        self._text = ""
        self.hide()

    @property
    def text(self) -> str:
        """What it says now; empty when hidden."""
        return "" if self.isHidden() else self._text

    @property
    def button(self) -> QPushButton:
        """The button of the notice's action."""
        return self._parts.button

    def show_notice(self, notice: MessageNotice | None, *, offer: bool = True) -> None:
        """Say something, or hide; with `offer` False without the button."""
        if notice is None:
            self.hide()
            return
        self._text = notice.text
        self._action = notice.action or ""
        self._parts.show_notice(notice, offer=offer and notice.action is not None)
        mark(self, notice="remark" if notice.tone == "info" else notice.tone)
        self.setAccessibleName(notice.text)
        self.show()

    @cached_property
    def _parts(self) -> _Parts:
        parts = _Parts(self, dismissable=self._dismissable)
        parts.button.clicked.connect(lambda: self.triggered.emit(self._action))
        parts.close.clicked.connect(self._dismiss)
        return parts

    def _dismiss(self) -> None:
        self.hide()
        self.dismissed.emit()


class _Parts(QObject):
    """The widgets of a strip and their places."""

    def __init__(self, strip: QFrame, *, dismissable: bool) -> None:
        super().__init__(strip)
        self._icon = QToolButton(strip)  # a button only because it can carry a theme's icon
        self._icon.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._icon.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        middle = QWidget(strip)
        self._label = BreakingText(middle)
        self.button = QPushButton()
        self._buttons = ButtonRow((self.button,), middle)
        self.close = QToolButton(strip)
        self.close.setToolTip(tr("Dismiss"))
        self.close.setAccessibleName(tr("Dismiss this message"))
        theme().set_icon(self.close, "close", "muted")
        self.close.setVisible(dismissable)
        columns = FoldingLayout(middle, least=_LEAST_CHARACTERS)
        columns.setContentsMargins(0, 0, 0, 0)
        columns.addWidget(self._label)
        columns.addWidget(self._buttons)
        row = self._row = QHBoxLayout(strip)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(middle, 1)
        row.addWidget(self.close, 0, Qt.AlignmentFlag.AlignTop)
        theme().changed.connect(self._align)

    def show_notice(self, notice: MessageNotice, *, offer: bool) -> None:
        """Say it, with the button or without."""
        icon, color = _TONES[notice.tone]
        margin = 0 if notice.tone == "info" else 8  # a remark has no frame
        self._row.setContentsMargins(margin, margin * 5 // 8, margin, margin * 5 // 8)
        theme().set_icon(self._icon, icon, color)
        self._icon.setAccessibleName(_names()[notice.tone])
        mark(self._label, muted=notice.tone == "info")
        self._label.setAccessibleName(_names()[notice.tone])
        self._label.set_text(notice.text)
        self.button.setText(notice.label)
        self._buttons.setVisible(offer)
        self.button.setVisible(offer)
        self._align()

    @Slot()
    def _align(self) -> None:
        """The middles of the sign, of the first line and of the buttons are at one height."""
        shown = [self._icon, *(each for each in (self.button, self.close) if not each.isHidden())]
        for each in shown:
            each.ensurePolished()
        height = max(each.sizeHint().height() for each in shown)
        self._icon.setFixedHeight(height)
        self.close.setFixedHeight(height)
        self._label.set_padding(max(0, (height - self._label.fontMetrics().height()) // 2))
