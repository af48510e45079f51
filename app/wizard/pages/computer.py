"""Page 1, "Your computer": what was found, in plain words."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.labels import TextLabel, hint
from app.widgets.problem import ProblemBox
from app.widgets.progress import LabelledProgress
from app.wizard.computer import Row, details, rows
from app.wizard.events import Retry
from app.wizard.pages.page import Page
from app.wizard.state import FlowState
from engine.hardware import Hardware


class ComputerPage(Page):
    """The parts of the computer in a table, with what each means for running a model."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Your computer"),
            tr(
                "Fiddler Chat runs large language models on your own computer. "
                "Nothing you write leaves it. This is what it has to work with:"
            ),
            parent,
        )
        self._shown: Hardware | None = None
        self.progress = LabelledProgress(self)
        self.progress.start(tr("Looking at the processor, memory and graphics card"))
        self.problem = ProblemBox(self)
        self.table = QFrame(self)
        mark(self.table, card=True)
        self._grid = QGridLayout(self.table)
        self._grid.setContentsMargins(18, 14, 18, 14)
        self._grid.setHorizontalSpacing(20)
        self._grid.setVerticalSpacing(12)
        self._grid.setColumnStretch(1, 1)
        self.copy = push_button(tr("&Copy details"), self._copy, self)
        self.copy.setToolTip(tr("Copies everything that was found as text, for a report or a question."))
        self.again = push_button(tr("&Look again"), lambda: self.send.emit(Retry()), self)
        self.again.setToolTip(tr("After closing other programs or changing something."))
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.again)
        buttons.addStretch(1)
        self.content.addWidget(self.progress)
        self.content.addWidget(self.problem)
        self.content.addWidget(self.table)
        self.content.addLayout(buttons)
        self.content.addStretch(1)

    def news(self) -> QWidget | None:
        """The problem, if there is one."""
        return self.problem if self.problem.isVisible() else None

    def show_state(self, state: FlowState) -> None:
        """Show the hardware, that it is being looked at, or why it could not be."""
        self.problem.show_problem(state.problem)
        self.progress.setVisible(state.hardware is None and state.problem is None)
        self.table.setVisible(state.hardware is not None)
        self.copy.setEnabled(state.hardware is not None)
        self.again.setEnabled(state.hardware is not None or state.problem is not None)
        if state.hardware is not None and state.hardware is not self._shown:
            self._fill(rows(state.hardware))
        self._shown = state.hardware

    def _fill(self, parts: tuple[Row, ...]) -> None:
        self.copy.setText(tr("&Copy details"))
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for line, part in enumerate(parts):
            label = hint(part.label, self.table)
            label.setWordWrap(False)
            cell = QWidget(self.table)
            column = QGridLayout(cell)
            column.setContentsMargins(0, 0, 0, 0)
            column.setVerticalSpacing(2)
            value = TextLabel(part.value, cell, bold=True)
            column.addWidget(value, 0, 0)
            if part.meaning:
                meaning = hint(part.meaning, cell)
                if not part.good:
                    mark(meaning, muted=False, tone="warning")
                column.addWidget(meaning, 1, 0)
            cell.setAccessibleName(f"{part.label}: {part.value}. {part.meaning}")
            self._grid.addWidget(label, line, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(cell, line, 1)

    @Slot()
    def _copy(self) -> None:
        if self._shown is not None:
            QGuiApplication.clipboard().setText(details(self._shown))
            self.copy.setText(tr("Copied"))
