"""The part of the model page about calibration: when it was measured, whether it is still valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from app.calibrations import moment_text
from app.i18n import tr
from app.theme import mark
from app.widgets.background import Background
from app.widgets.buttons import push_button
from app.widgets.folding import beside_buttons
from app.widgets.labels import TextLabel, heading, hint
from app.wizard.offers import Knowledge
from engine.errors import EngineError
from engine.hardware import Hardware
from engine.options import LoadOptions
from engine.profile import Profile

Found = tuple[Profile | None, str]


class CalibrationCard(QFrame):
    """Looks for the profile in the background. `requested`: "Re-run calibration" was pressed."""

    requested = Signal()
    history_requested = Signal()

    def __init__(
        self, knowledge: Knowledge, options: Callable[[], LoadOptions], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._knowledge, self._options = knowledge, options
        self._hardware: Hardware | None = None
        self._search = Background[tuple[Hardware, Found]](tr("Reading the saved calibration"), self)
        mark(self, card=True)
        self.state = TextLabel(parent=self)
        self.warning = TextLabel(parent=self)
        mark(self.warning, tone="warning")
        self.details = hint(parent=self)
        self.run = push_button(tr("Re-run &calibration…"), self.requested.emit, self)
        self.run.setToolTip(tr("Measures this computer again with the current model. About a minute."))
        self.history = push_button(tr("&History…"), self.history_requested.emit, self)
        self.history.setToolTip(tr("Earlier calibrations: compare them, or take one back."))
        texts = (heading(tr("Calibration"), self), self.state, self.warning, self.details)
        beside_buttons(self, texts, (self.history, self.run))
        self._show(None, "")

    def look(self, model: Path | None) -> None:
        """Find the profile of `model` on this computer and show it."""
        self.run.setEnabled(model is not None)
        if model is None:
            self._search.forget()
            self._show(None, "")
            return
        knowledge, options, hardware = self._knowledge, self._options(), self._hardware

        def work() -> tuple[Hardware, Found]:
            known = hardware or knowledge.detect(quick=True)
            return known, knowledge.profile(model, known, options)

        self.state.setText(tr("Looking for the saved calibration…"))
        self._search.run(work, self._on_found, self._on_failed)

    def forget(self) -> None:
        """The dialog is being closed: no answer is wanted any more."""
        self._search.forget()

    def _on_found(self, answer: tuple[Hardware, Found]) -> None:
        self._hardware, (profile, note) = answer
        self._show(profile, note)

    def _on_failed(self, error: EngineError) -> None:
        self._show(None, str(error))

    def _show(self, profile: Profile | None, note: str) -> None:
        self.warning.setText(note)
        self.warning.setVisible(bool(note))
        self.details.setVisible(profile is not None)
        if profile is None:
            self.state.setText(tr("This computer is not calibrated for this model: estimates are used."))
            return
        self.state.setText(tr("Measured on {date}.", date=moment_text(profile.created, long=True)))
        self.details.setText(
            tr(
                "Predicted {predicted} tokens per second, measured {measured} (fit within {fit}).",
                predicted=f"{profile.predicted_tokens_per_second:.1f}",
                measured=f"{profile.measured_tokens_per_second:.1f}",
                fit=f"{profile.latency.fit_error:.0%}",
            )
        )
