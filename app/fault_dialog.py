"""The dialogs about the program's own faults: one that just happened, and a bad end of the run before."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from app.desktop.last_run import BadEnding
from app.details import DetailsText
from app.dialogs import MessageDialog
from app.errors import UnexpectedError, details_of
from app.fault_report import surroundings
from app.i18n import tr
from app.widgets.labels import TextLabel
from app.widgets.problem import ProblemText

_Role = QDialogButtonBox.ButtonRole
_COLUMNS, _ROWS = 76, 10  # of the details, that are to be read without scrolling


class FaultDialog(MessageDialog):
    """A fault that nobody caught: its place, to be copied, and whether to go on or to begin anew.

    Where the program `can_go_on` no more, closing the dialog ends it.
    """

    restart_requested = Signal()

    def __init__(self, parent: QWidget | None, error: UnexpectedError, *, can_go_on: bool = True) -> None:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        text = ProblemText()
        text.set_error(error)
        self.details = DetailsText(error.details, tr("Details of the fault"))
        self.details.show_columns(_COLUMNS, rows=_ROWS)
        column.addWidget(text)
        column.addWidget(self.details, 1)
        column.addWidget(TextLabel(tr("The details contain nothing that you or the model wrote.")))
        super().__init__(parent, tr("Fiddler Chat"), content)
        copy = self.add_button(tr("&Copy details"), _Role.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(details_of(error)))
        restart = self.add_button(tr("&Restart"), _Role.DestructiveRole)
        restart.setToolTip(tr("Saves everything, closes the program and starts it again."))
        restart.clicked.connect(self._restart)
        on = tr("&Go on") if can_go_on else tr("&Quit")
        self.add_button(on, _Role.RejectRole, default=True)
        self.restart_wanted = False
        self.setAccessibleName(error.what)
        self.setAccessibleDescription(str(error))

    def _restart(self) -> None:
        self.restart_wanted = True
        self.restart_requested.emit()
        self.accept()


def ending_words(ending: BadEnding, *, all_there: bool = True) -> str:
    """What is said at the start after a run that did not end properly; `all_there`: so are the chats."""
    what = tr("Fiddler Chat did not end properly the last time.")
    why = (
        tr("A part of it crashed.") if ending.crash else tr("It was ended from outside, or the power failed.")
    )
    consoling = tr("Nothing that was saved is lost: all chats are there.") if all_there else ""
    return f"{what} {why} {consoling}".rstrip()


def show_ending(parent: QWidget, ending: BadEnding, *, all_there: bool = True) -> MessageDialog:
    """Show what is known about a bad end."""
    content = QWidget()
    column = QVBoxLayout(content)
    column.setContentsMargins(0, 0, 0, 0)
    words = ending_words(ending, all_there=all_there)
    column.addWidget(TextLabel(words, content))
    details = DetailsText(_details(ending), tr("Details of the last run"), content)
    details.show_columns(_COLUMNS, rows=_ROWS)
    column.addWidget(details)
    dialog = MessageDialog(parent, tr("The last run"), content)
    dialog.add_button(tr("&Copy details"), _Role.ActionRole).clicked.connect(details.copy_all)
    dialog.add_button(tr("Close"), _Role.RejectRole, default=True)
    dialog.setAccessibleName(tr("The last run"))
    dialog.setAccessibleDescription(words)
    dialog.open()
    return dialog


def _details(ending: BadEnding) -> str:
    lines = [surroundings()]
    if ending.started:
        lines.append(tr("Started {time}, version {version}", time=ending.started, version=ending.version))
    lines += ["", ending.crash or tr("No crash was recorded.")]
    return "\n".join(lines)
