"""Page 5, "Result": where the experts live, the memory they take, predicted against measured speed."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.i18n import tr
from app.precision import precision_consequence, precision_label
from app.theme import mark
from app.widgets.amount_bar import AmountBar
from app.widgets.buttons import push_button
from app.widgets.labels import TextLabel, heading, hint
from app.widgets.problem import ProblemBox
from app.widgets.progress import LabelledProgress
from app.wizard.events import Force, Retry, Stop
from app.wizard.flow import can_retry, can_stop
from app.wizard.pages.page import Page
from app.wizard.pages.residency_map import ResidencyMap
from app.wizard.state import FlowState, Measured, Work
from engine.profile import Profile
from engine.status import EngineStatus
from engine.units import format_bytes


class ResultPage(Page):
    """What came out. Nothing is shown as being on a GPU unless it really is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Result"), "", parent)
        self._status: EngineStatus | None = None
        self._work: Work | None = None
        self.progress = LabelledProgress(self)
        self.cancel = push_button(tr("C&ancel"), lambda: self.send.emit(Stop()), self)
        self.retry = push_button(tr("&Load the model"), lambda: self.send.emit(Retry()), self, primary=True)
        self.problem = ProblemBox(self)
        self.problem.anyway.connect(lambda: self.send.emit(Force(True)))
        top = QHBoxLayout()
        top.addWidget(self.progress, 1)
        top.addWidget(self.cancel)
        top.addWidget(self.retry)
        self.doubt = TextLabel(
            tr(
                "Prediction and measurement are far apart. Other programs were probably busy meanwhile: "
                "go back and measure again when the computer has nothing else to do."
            ),
            self,
        )
        mark(self.doubt, tone="warning")
        self.figures = QWidget(self)
        row = QHBoxLayout(self.figures)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        self.predicted = Figure(tr("Predicted"), self.figures)
        self.measured = Figure(tr("Measured"), self.figures)
        self.fit = Figure(tr("Fit of the latency model"), self.figures)
        for figure in (self.predicted, self.measured, self.fit):
            row.addWidget(figure, 1)
        self.remarks = hint(parent=self)
        self.details = QFrame(self)
        mark(self.details, card=True)
        column = QVBoxLayout(self.details)
        column.setContentsMargins(18, 14, 18, 14)
        column.setSpacing(8)
        self.placement = TextLabel(parent=self.details)
        self.map = ResidencyMap(self.details)
        self.vram_text = hint(parent=self.details)
        self.vram = AmountBar(self.details)
        self.ram_text = hint(parent=self.details)
        self.notes = hint(parent=self.details)
        column.addWidget(heading(tr("Where the experts are"), self.details))
        for widget in (self.placement, self.map, self.vram_text, self.vram, self.ram_text, self.notes):
            column.addWidget(widget)
        self.content.addWidget(self.problem)
        self.content.addLayout(top)
        self.content.addWidget(self.figures)
        self.content.addWidget(self.remarks)
        self.content.addWidget(self.doubt)
        self.content.addWidget(self.details)
        self.content.addStretch(1)

    def news(self) -> QWidget | None:
        """The problem, if there is one."""
        return self.problem if self.problem.isVisible() else None

    def show_state(self, state: FlowState) -> None:
        """Show the result, or the loading that comes before it."""
        loading = state.work is Work.LOAD
        if loading and self._work is not Work.LOAD:
            self.progress.start(tr("Loading the model"))
        self._work = state.work
        if loading and state.progress is not None:
            self.progress.show_progress(state.progress)
        self.progress.setVisible(loading)
        self.cancel.setVisible(loading)
        self.cancel.setEnabled(can_stop(state))
        self.retry.setVisible(can_retry(state))
        self.problem.show_problem(state.problem)
        self.introduction.setText(_introduction(state))
        self.figures.setVisible(state.profile is not None)
        if state.profile is not None:
            self._show_profile(state.profile)
        self.remarks.setVisible(state.profile is not None and bool(state.profile.remarks))
        self.doubt.setVisible(state.profile is not None and state.profile.doubtful)
        self.details.setVisible(state.status is not None)
        if state.status is not None and state.status is not self._status:
            self._show_status(state.status)
        self._status = state.status

    def first_focus(self) -> QWidget | None:
        """Whatever starts or stops the work."""
        return next((b for b in (self.retry, self.cancel) if not b.isHidden() and b.isEnabled()), None)

    def _show_profile(self, profile: Profile) -> None:
        unit = tr("tokens per second")
        self.predicted.set_figure(f"{profile.predicted_tokens_per_second:.1f}", unit)
        error = abs(profile.prediction_error)
        apart = tr("tokens per second; the prediction is {percent} off", percent=f"{error:.0%}")
        self.measured.set_figure(f"{profile.measured_tokens_per_second:.1f}", apart)
        fit = profile.latency.fit_error
        self.fit.set_figure(f"±{fit:.0%}", tr("average error of a straight line through the CPU's times"))
        self.remarks.setText(" ".join(profile.remarks))

    def _show_status(self, status: EngineStatus) -> None:
        self.map.set_residency(status.residency if status.has_gpu else None, status.layers, status.experts)
        total = status.layers * status.experts
        if status.has_gpu:
            text = tr(
                "{count} of {total} experts are in the memory of the graphics card ({name}); the others run "
                "on the CPU, or are copied when that is faster.",
                count=status.resident_experts,
                total=total,
                name=status.device,
            )
        else:
            text = tr(
                "No graphics card is used: all {total} experts run on the CPU ({name}).",
                total=total,
                name=status.device,
            )
        if status.precision != "bf16":
            label, costs = precision_label(status.precision), precision_consequence(status.precision)
            text += " " + tr("They are held in {precision}. {costs}", precision=label, costs=costs)
        self.placement.setText(text)
        self.vram.setVisible(status.has_gpu)
        self.vram_text.setVisible(status.has_gpu)
        vram = tr(
            "Graphics memory: {used} used of {budget} allowed",
            used=format_bytes(status.vram_used),
            budget=format_bytes(status.vram_budget),
        )
        self.vram.set_amounts([status.vram_used], status.vram_budget, vram)
        self.vram_text.setText(vram)
        self.ram_text.setText(tr("Memory: {used} used", used=format_bytes(status.ram_used)))
        self.notes.setText("\n".join(status.notes))
        self.notes.setVisible(bool(status.notes))


class Figure(QFrame):
    """One number in large type with what it is above and what it means below."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, card=True)
        self._name = name
        self.value = TextLabel(parent=self, scale=1.6, bold=True)
        self.meaning = hint(parent=self)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(2)
        column.addWidget(hint(name, self))
        column.addWidget(self.value)
        column.addWidget(self.meaning)
        column.addStretch(1)

    def set_figure(self, value: str, meaning: str) -> None:
        """Show `value`."""
        self.value.setText(value)
        self.meaning.setText(meaning)
        self.setAccessibleName(f"{self._name}: {value} {meaning}")


def _introduction(state: FlowState) -> str:
    if state.problem is not None:
        return tr("The model could not be loaded.")
    if not state.loaded:
        return tr("The model is being loaded.") if state.work else tr("The model is not loaded.")
    if state.measured is Measured.YES:
        return tr("Everything is ready. This is how the model runs on this computer:")
    return tr("Everything is ready, with estimates: this computer was not calibrated for this model.")
