"""A coloured strip with an icon, a sentence and at most one button."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from app.chat.notices import MessageNotice
from app.i18n import tr
from app.theme import mark, theme

_TONES = {"info": ("info", "muted"), "warning": ("warning", "warning"), "error": ("error", "error")}


def _names() -> dict[str, str]:
    """What the icons say to a screen reader."""
    return {"info": tr("Remark"), "warning": tr("Warning"), "error": tr("Error")}


class NoticeBar(QFrame):
    """Hidden until it has something to say."""

    triggered = Signal(str)  # the notice's action
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None, *, dismissable: bool = False) -> None:
        super().__init__(parent)
        self._action = ""
        self._icon = QToolButton()  # a button only because it can carry a theme's icon
        self._icon.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._icon.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._label = QLabel()
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._button = QPushButton()
        self._button.clicked.connect(lambda: self.triggered.emit(self._action))
        self._close = QToolButton(self)  # shown without a parent it would be a window for a moment
        self._close.setToolTip(tr("Dismiss"))
        self._close.setAccessibleName(tr("Dismiss this message"))
        theme().set_icon(self._close, "close", "muted")
        self._close.clicked.connect(self._dismiss)
        self._close.setVisible(dismissable)
        row = self._row = QHBoxLayout(self)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._label, 1)
        row.addWidget(self._button)
        row.addWidget(self._close)
        self.hide()

    @property
    def text(self) -> str:
        """What it says now; empty when hidden."""
        return "" if self.isHidden() else self._label.text()

    @property
    def button(self) -> QPushButton:
        """The button of the notice's action."""
        return self._button

    def show_notice(self, notice: MessageNotice | None, *, offer: bool = True) -> None:
        """Say something, or hide; with `offer` False without the button."""
        if notice is None:
            self.hide()
            return
        icon, color = _TONES[notice.tone]
        mark(self._label, muted=notice.tone == "info")
        margin = 0 if notice.tone == "info" else 8  # a remark has no frame
        self._row.setContentsMargins(margin, margin * 3 // 4, margin, margin * 3 // 4)
        theme().set_icon(self._icon, icon, color)
        self._icon.setAccessibleName(_names()[notice.tone])
        mark(self, notice="remark" if notice.tone == "info" else notice.tone)
        self._label.setText(notice.text)
        self._action = notice.action or ""
        self._button.setText(notice.label)
        self._button.setVisible(offer and notice.action is not None)
        self.setAccessibleName(notice.text)
        self.show()

    def _dismiss(self) -> None:
        self.hide()
        self.dismissed.emit()
