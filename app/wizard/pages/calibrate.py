"""Page 4, "Calibrate": the computer is measured with the model, each measurement shown as it is made."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.curve_plot import CurvePlot, Points
from app.widgets.labels import TextLabel, hint
from app.widgets.problem import ProblemBox
from app.widgets.progress import LabelledProgress
from app.wizard.events import Force, Retry, Stop
from app.wizard.flow import can_retry, can_skip, can_stop
from app.wizard.pages.page import Page
from app.wizard.state import FlowState, Measured, Work
from engine.profile import Probe, ProbeKind
from engine.units import format_seconds


class CalibratePage(Page):
    """Progress, a table of measurements, and the curves that grow with it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Calibrate"),
            tr(
                "The program measures how long this computer takes for the model's parts, and from this "
                "decides where each part runs. Other programs that are busy meanwhile disturb the result."
            ),
            parent,
        )
        self._probes: tuple[Probe, ...] = ()
        self._work: Work | None = None
        self.note = TextLabel(parent=self)
        mark(self.note, tone="warning")
        self.progress = LabelledProgress(self, even=False)
        self.outcome = TextLabel(parent=self)
        self.cancel = push_button(tr("C&ancel"), lambda: self.send.emit(Stop()), self)
        self.retry = push_button(tr("&Measure"), lambda: self.send.emit(Retry()), self, primary=True)
        self.problem = ProblemBox(self)
        self.problem.anyway.connect(lambda: self.send.emit(Force(True)))
        self.results = QFrame(self)
        mark(self.results, card=True)
        self.table = _table(self.results)
        self.plot = CurvePlot(self.results)
        both = QHBoxLayout(self.results)
        both.setContentsMargins(12, 12, 12, 12)
        both.setSpacing(16)
        both.addWidget(self.table, 3)
        both.addWidget(self.plot, 2)
        self.skip_hint = hint(
            tr(
                "Without calibration the program goes on with estimates: everything works, but parts may run "
                "in the slower place. You can calibrate later in the settings."
            ),
            self,
        )
        top = QHBoxLayout()
        texts = QVBoxLayout()
        texts.addWidget(self.progress)
        texts.addWidget(self.outcome)
        top.addLayout(texts, 1)
        top.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignBottom)
        top.addWidget(self.retry, 0, Qt.AlignmentFlag.AlignBottom)
        for widget in (self.note, self.problem):
            self.content.addWidget(widget)
        self.content.addLayout(top)
        self.content.addWidget(self.results, 1)
        self.content.addWidget(self.skip_hint)
        self.content.addStretch()  # takes the room of the results while they are hidden

    def news(self) -> QWidget | None:
        """The problem, if there is one."""
        return self.problem if self.problem.isVisible() else None

    def show_state(self, state: FlowState) -> None:
        """Show what is being measured and what was."""
        working = state.work in (Work.LOAD, Work.CALIBRATE)
        if working and state.work is not self._work:
            loading = state.work is Work.LOAD
            self.progress.start(tr("Loading the model") if loading else tr("Measuring"))
        self._work = state.work
        if working and state.progress is not None:
            self.progress.show_progress(state.progress)
        self.progress.setVisible(working)
        self.note.setText(state.note)
        self.note.setVisible(bool(state.note) and state.measured is Measured.NO)
        self.problem.show_problem(state.problem)
        self.outcome.setText(_outcome(state))
        self.outcome.setVisible(bool(self.outcome.text()))
        self.cancel.setVisible(working)
        self.cancel.setEnabled(can_stop(state))
        self.cancel.setText(tr("Stopping…") if state.after is not None else tr("C&ancel"))
        self.retry.setVisible(can_retry(state))
        self.retry.setText(_retry_text(state))
        first = state.measured is not Measured.YES
        if self.retry.autoDefault() is not first:
            self.retry.setAutoDefault(first)
            mark(self.retry, primary=first)
        self.skip_hint.setVisible(can_skip(state) or state.measured is Measured.SKIPPED)
        probes = state.probes or (state.profile.probes if state.profile is not None else ())
        self._show_probes(probes)
        self.results.setVisible(bool(probes) or working)

    def first_focus(self) -> QWidget | None:
        """Whatever starts or stops the work."""
        return next((b for b in (self.retry, self.cancel) if not b.isHidden() and b.isEnabled()), None)

    def _show_probes(self, probes: tuple[Probe, ...]) -> None:
        if probes == self._probes:
            return
        if probes[: len(self._probes)] != self._probes:
            self._probes = ()
            self.table.setRowCount(0)
        for probe in probes[len(self._probes) :]:
            _add_row(self.table, probe)
        self._probes = probes
        self.table.setColumnHidden(2, not any(probe.spread for probe in probes))
        self.table.scrollToBottom()
        self.plot.set_curves(curves(probes))
        self.plot.setVisible(any(len(points) > 1 for points in curves(probes).values()))


def curves(probes: tuple[Probe, ...]) -> dict[str, Points]:
    """The plot's curves: one expert's time over the tokens it is given, on the CPU and on the GPU."""
    names = {ProbeKind.CPU_EXPERT: tr("Expert on the CPU"), ProbeKind.GPU_EXPERT: tr("Expert on the GPU")}
    found: dict[str, Points] = {}
    for kind, name in names.items():
        points = sorted((probe.tokens, probe.seconds) for probe in probes if probe.kind is kind)
        if points:
            found[name] = points
    return found


def _outcome(state: FlowState) -> str:
    if state.work is not None or state.problem is not None:
        return ""
    if state.measured is Measured.YES:
        return tr("This computer is calibrated for this model.")
    if state.stopped:
        return tr("Stopped. Nothing was saved yet.")
    if state.measured is Measured.SKIPPED:
        return tr("Calibration was skipped.")
    return tr("Not measured yet. It takes about a minute.")


def _retry_text(state: FlowState) -> str:
    if state.problem is not None:
        return tr("&Try again")
    return tr("&Measure again") if state.measured is Measured.YES or state.stopped else tr("&Measure")


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def _table(parent: QWidget) -> QTableWidget:
    table = QTableWidget(0, 3, parent)
    for column, text in enumerate((tr("Measured"), tr("Time"), tr("Varies by"))):
        item = QTableWidgetItem(text)
        item.setTextAlignment(_RIGHT if column else _LEFT)
        table.setHorizontalHeaderItem(column, item)
    table.setAccessibleName(tr("Measurements"))
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setFrameShape(QFrame.Shape.NoFrame)
    table.verticalHeader().hide()
    table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header = table.horizontalHeader()
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    for column in (1, 2):
        header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
    header.setHighlightSections(False)
    table.setMinimumHeight(table.fontMetrics().height() * 8)
    return table


def _add_row(table: QTableWidget, probe: Probe) -> None:
    row = table.rowCount()
    table.insertRow(row)
    spread = f"{probe.spread:.0%}" if probe.spread else ""
    for column, text in enumerate((probe.name, format_seconds(probe.seconds), spread)):
        item = QTableWidgetItem(text)
        item.setToolTip(text)
        if column:
            item.setTextAlignment(_RIGHT)
        table.setItem(row, column, item)
