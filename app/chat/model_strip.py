"""Above the composer while there is no model to talk to: none chosen, loading, or failed to load."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.flow import FlowLayout
from app.widgets.problem import ProblemText
from app.widgets.progress import LabelledProgress
from engine.errors import EngineError, ShortageError
from engine.progress import Progress


class ModelStrip(QFrame):
    """Exactly one of: hidden, "no model", progress with cancel, or an error with ways out."""

    choose_requested = Signal()
    cancel_requested = Signal()
    retry_requested = Signal()
    anyway_requested = Signal()  # load although memory looks short
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, card=True)
        self._none = QLabel(tr("No model is loaded. Choose one to begin to chat."))
        self._none.setWordWrap(True)
        self.progress = LabelledProgress()
        self.problem = ProblemText()
        self.choose = QPushButton(tr("Choose a model…"))
        self.cancel = QPushButton(tr("Cancel"))
        self.retry = QPushButton(tr("Try again"))
        self.anyway = QPushButton(tr("Load it anyway"))
        self.anyway.setToolTip(tr("The computer may become very slow, or loading may fail."))
        self.copy = QPushButton(tr("Copy details"))
        self.copy.clicked.connect(self.problem.copy_details)
        self.choose.clicked.connect(self.choose_requested)
        self.cancel.clicked.connect(self.cancel_requested)
        self.retry.clicked.connect(self.retry_requested)
        self.anyway.clicked.connect(self.anyway_requested)
        buttons = FlowLayout(right=True)
        for button in (self.copy, self.anyway, self.choose, self.retry, self.cancel):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        for widget in (self._none, self.progress, self.problem):
            column.addWidget(widget)
        column.addLayout(buttons)
        self.show_none()

    @property
    def loading(self) -> bool:
        """Whether a model is being loaded."""
        return not self.isHidden() and not self.progress.isHidden()

    def show_ready(self) -> None:
        """A model is loaded: nothing to say."""
        self.hide()

    def show_none(self) -> None:
        """No model is loaded, and none is being loaded."""
        self._show(self._none, self.choose)
        mark(self.choose, primary=True)

    def show_loading(self, what: str) -> None:
        """Loading begins."""
        self.progress.start(what)
        self.cancel.setEnabled(True)
        self._show(self.progress, self.cancel)

    def show_progress(self, progress: Progress) -> None:
        """Loading goes on."""
        self.progress.show_progress(progress)

    def show_cancelling(self) -> None:
        """Cancel was pressed: it takes effect at the next step."""
        self.cancel.setEnabled(False)

    def show_error(self, error: EngineError) -> None:
        """Loading failed."""
        self.problem.set_error(error)
        mark(self.choose, primary=False)
        buttons = [self.choose, self.retry, self.copy]
        if isinstance(error, ShortageError):
            buttons.append(self.anyway)
        self._show(self.problem, *buttons)
        announce(self, str(error))

    def _show(self, *widgets: QWidget) -> None:
        for widget in (self._none, self.progress, self.problem, self.choose, self.cancel, self.retry):
            widget.setVisible(widget in widgets)
        for widget in (self.anyway, self.copy):
            widget.setVisible(widget in widgets)
        self.show()
        self.changed.emit()
