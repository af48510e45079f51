"""What an empty chat shows: a greeting, what the model is good for, and things to try."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QScrollArea, QVBoxLayout, QWidget

from app.i18n import tr, tr_noop
from app.theme import application_icon, heading, mark
from app.widgets.wrapping_button import WrappingButton
from engine.status import EngineStatus

SUGGESTIONS = (
    tr_noop("What is the capital of France?"),
    tr_noop("Explain in two sentences what a computer does."),
    tr_noop("Write a short poem about autumn."),
)
_ICON = 72
_SIDE = 32  # pixels left and right


class Welcome(QScrollArea):
    """Centred in the place of the conversation; scrolls where the window is small."""

    suggested = Signal(str)  # a text for the composer

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        icon = QLabel()
        icon.setPixmap(application_icon().pixmap(QSize(_ICON, _ICON), self.devicePixelRatio()))
        icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        title = heading(QLabel(tr("What shall we talk about?")), 1.6)
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        title.setWordWrap(True)
        self.note = QLabel()
        self.note.setTextFormat(Qt.TextFormat.PlainText)  # a model's name is that of a folder
        self.note.setWordWrap(True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        mark(self.note, muted=True)
        content = QWidget()
        self.buttons: list[WrappingButton] = []
        self.setWidget(content)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column = QVBoxLayout(content)
        column.setContentsMargins(_SIDE, 24, _SIDE, 24)
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(icon)
        column.addWidget(title)
        column.addWidget(self.note)
        column.addSpacing(12)
        self.buttons = [WrappingButton(tr(text)) for text in SUGGESTIONS]
        for button in self.buttons:
            button.setToolTip(tr("Put this into the message field"))
            button.clicked.connect(partial(self._suggest, button.whole_text))
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the suggestions' lines anew."""
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        """The same where the font is another."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        for button in self.buttons:
            button.fit(self.viewport().width() - 2 * _SIDE)
        # The area does not always hear of it when it is shown for the first time in another width.
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))

    def _suggest(self, text: str) -> None:
        self.suggested.emit(text)

    def show_model(self, status: EngineStatus | None) -> None:
        """Say what to expect of the loaded model."""
        if status is None:
            text = tr("Everything runs on this computer. Nothing you write leaves it.")
        elif status.is_starter:
            text = tr(
                "The starter model is for trying things out: it is small, so its answers are simple "
                "and often wrong.\nNothing you write leaves this computer."
            )
        else:
            text = tr("{model} runs on this computer. Nothing you write leaves it.", model=status.model_name)
        self.note.setText(text)
