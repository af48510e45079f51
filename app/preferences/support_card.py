"""The part of the data page for when something goes wrong: the log, and a report for somebody who helps."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QFrame, QVBoxLayout, QWidget

from app.details import DetailsText
from app.diagnostics import gather, report, settings_lines
from app.dialogs import MessageDialog
from app.i18n import tr
from app.settings import SettingsStore
from app.theme import mark
from app.widgets.background import Background
from app.widgets.buttons import push_button
from app.widgets.folding import beside_buttons
from app.widgets.labels import TextLabel, heading, hint
from app.wizard.offers import Knowledge

_Role = QDialogButtonBox.ButtonRole


class SupportCard(QFrame):
    """Copies the diagnostic report and shows it, so that nobody sends what they have not seen."""

    trouble = Signal(object)

    def __init__(self, settings: SettingsStore, knowledge: Knowledge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings, self._knowledge = settings, knowledge
        self._work: Background[str] = Background(tr("Writing the diagnostic report"), self)
        self.shown: MessageDialog | None = None
        mark(self, card=True)
        self.copy = push_button(tr("Copy &diagnostic report"), self._write, self)
        explanation = tr(
            "What somebody who helps you needs to know: this computer, versions, settings, calibration and "
            "the last errors. No word of your chats, their titles or your system prompt is in it."
        )
        texts = (heading(tr("When something goes wrong"), self), hint(explanation, self))
        beside_buttons(self, texts, (self.copy,))

    def forget(self) -> None:
        """The dialog is being closed: no answer is wanted any more."""
        self._work.forget()

    @Slot()
    def _write(self) -> None:
        self.copy.setEnabled(False)
        lines, knowledge = settings_lines(self._settings), self._knowledge
        self._work.run(lambda: report(gather(knowledge, lines)), self._show, self._fail)

    def _show(self, text: str) -> None:
        self.copy.setEnabled(True)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(
            TextLabel(tr("The report is on the clipboard. This is all of it:"), content, bold=True)
        )
        details = DetailsText(text, tr("Diagnostic report"), content)
        details.show_columns(84, rows=18)
        details.setLineWrapMode(DetailsText.LineWrapMode.WidgetWidth)  # sentences, too: some are longer
        column.addWidget(details)
        details.copy_all()
        dialog = self.shown = MessageDialog(self.window(), tr("Diagnostic report"), content)
        again = dialog.add_button(tr("Copy again"), _Role.ActionRole)
        again.clicked.connect(details.copy_all)
        dialog.add_button(tr("Close"), _Role.RejectRole, default=True)
        dialog.open()

    def _fail(self, error: object) -> None:
        self.copy.setEnabled(True)
        self.trouble.emit(error)
