"""Loading and measuring: shown, cancelled, failing, skipped."""

from __future__ import annotations

import threading

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.settings import registry
from app.wizard.state import Measured, Step
from engine.errors import (
    CalibrationError,
    ShortageError,
)
from tests.app.fakes import ScriptedFactory
from tests.app.wizard.access import (
    Open,
    calibrate,
    choose_starter,
    result,
)
from tests.app.wizard.conftest import Wizard
from tests.app.wizard_fakes import ScriptedKnowledge


class TestCalibrate:
    def at_calibrate(self, open_wizard: Open) -> Wizard:
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.CALIBRATE)
        return wizard

    def test_probes_appear_one_by_one(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        assert calibrate(wizard).table.item(0, 0).text() == "One expert with the fastest kernels, 4 tokens"
        assert calibrate(wizard).table.item(0, 1).text() == "290 µs"
        factory.calibrate_gate.set()
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == len(factory.probes))

    def test_a_model_that_does_not_fit_is_loaded_anyway(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.load_error = ShortageError("Too little memory.", why="3 GiB missing.")
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(calibrate(wizard).problem.isVisible)
        assert not factory.options[-1].force
        factory.load_error = None
        wizard.click(calibrate(wizard).problem.do_anyway)
        wizard.wait(lambda: wizard.state.measured is Measured.YES)
        assert factory.options[-1].force

    def test_cancel_and_measure_again(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.click(calibrate(wizard).cancel)
        wizard.wait(calibrate(wizard).retry.isVisible)
        assert not wizard.dialog.next.isEnabled()
        factory.calibrate_gate.set()
        wizard.click(calibrate(wizard).retry)
        wizard.wait(lambda: wizard.state.measured is Measured.YES)
        assert calibrate(wizard).table.rowCount() == len(factory.probes)

    def test_failure_is_explained_and_can_be_skipped(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_error = CalibrationError("A time makes no sense.", action="Try again.")
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(calibrate(wizard).problem.isVisible)
        assert calibrate(wizard).skip_hint.isVisible()
        wizard.click(wizard.dialog.skip)
        wizard.wait_step(Step.RESULT)
        assert not result(wizard).figures.isVisible()
        assert "not calibrated" in result(wizard).introduction.text()
        wizard.click(wizard.dialog.next)
        assert wizard.settings.get(registry.WIZARD_COMPLETED)

    def test_skip_while_it_runs(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.click(wizard.dialog.skip)
        wizard.wait_step(Step.RESULT)

    def test_skipped_it_is_not_marked_as_done(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        labels = wizard.dialog.steps.findChildren(QLabel)
        wizard.click(wizard.dialog.skip)
        wizard.wait_step(Step.RESULT)
        names = {label.text(): label.accessibleName() for label in labels}
        assert names["–  Calibrate"] == "Calibrate, skipped"
        assert names["✓  Get the model"] == "Get the model, done"
        wizard.wait(wizard.dialog.back.isEnabled)
        wizard.click(wizard.dialog.back)
        wizard.wait_step(Step.CALIBRATE)
        assert "●  Calibrate" in [label.text() for label in labels]

    def test_closing_midway_comes_back_here_and_waits(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.press(Qt.Key.Key_Escape)
        wizard.wait(lambda: not wizard.dialog.isVisible())
        loads = len(factory.options)
        again = open_wizard()
        again.wait_step(Step.CALIBRATE)
        again.wait(calibrate(again).retry.isVisible)
        assert len(factory.options) == loads  # nothing long starts unasked
        factory.calibrate_gate.set()
        again.click(calibrate(again).retry)
        again.wait(lambda: again.state.measured is Measured.YES)

    def test_what_changed_is_said(
        self, open_wizard: Open, knowledge: ScriptedKnowledge, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_gate = threading.Event()  # afterwards there is nothing to say
        knowledge.found = (None, "The hardware has changed. Calibrate again.")
        wizard = self.at_calibrate(open_wizard)
        assert calibrate(wizard).note.text() == "The hardware has changed. Calibrate again."
