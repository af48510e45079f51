"""The wizard's steps at its left side: which are done or were skipped, which is shown, which are to come."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.theme import mark, theme
from app.widgets.labels import TextLabel, hint
from app.wizard.state import Step


def step_name(step: Step) -> str:
    """The step as it is called in the list and in the window's title."""
    names = {
        Step.COMPUTER: tr("Your computer"),
        Step.PLAN: tr("Model and plan"),
        Step.GET: tr("Get the model"),
        Step.CALIBRATE: tr("Calibrate"),
        Step.RESULT: tr("Result"),
    }
    return names[step]


class StepList(QFrame):
    """Only shows; Back and Next lead from step to step."""

    def __init__(self, steps: Sequence[Step], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, surface=True)
        self._steps = tuple(steps)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 26, 24, 24)
        column.setSpacing(14)
        column.addWidget(TextLabel(tr("Fiddler Chat"), self, scale=1.15, bold=True))
        column.addWidget(hint(tr("Setting up") if Step.PLAN in steps else tr("Calibrating"), self))
        column.addSpacing(10)
        self._labels: list[QLabel] = []
        for step in self._steps:
            label = QLabel(self)
            label.setText(step_name(step))
            self._labels.append(label)
            column.addWidget(label)
        column.addStretch(1)
        widest = max(self.fontMetrics().horizontalAdvance(f"✓  {step_name(step)}") for step in self._steps)
        self.setMinimumWidth(round(widest * 1.15) + 56)

    def set_step(self, current: Step, skipped: Collection[Step] = ()) -> None:
        """Mark the steps before `current` as done or skipped, and `current` as the one shown."""
        here = self._steps.index(current)
        for index, (step, label) in enumerate(zip(self._steps, self._labels, strict=True)):
            if index == here:
                sign, state = "●", tr("current step")
            elif index > here:
                sign, state = "○", tr("to come")
            elif step in skipped:
                sign, state = "–", tr("skipped")
            else:
                sign, state = "✓", tr("done")
            label.setText(f"{sign}  {step_name(step)}")
            label.setAccessibleName(f"{step_name(step)}, {state}")
            muted = index > here or (index < here and step in skipped)
            if bool(label.property("muted")) is not muted:
                mark(label, muted=muted)
            theme().scale_font(label, 1.0, bold=index == here)  # last: a new mark takes the font away
