"""Downloads and conversions: shown, cancelled, failing, resumed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog

from app.settings import registry
from app.wizard.state import Step
from engine.errors import (
    DownloadError,
)
from tests.app.fakes import ScriptedFactory
from tests.app.wizard.access import (
    Open,
    choose_starter,
    get,
    plan,
)
from tests.app.wizard.conftest import Wizard


class TestGet:
    def at_get(self, open_wizard: Open, factory: ScriptedFactory) -> Wizard:
        factory.download_gate = threading.Event()
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.GET)
        return wizard

    def test_progress_is_shown(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.wait(lambda: get(wizard).progress.what.text() == "Converting the starter model")
        assert get(wizard).progress.bar.value() == pytest.approx(1000 / 3, abs=1)
        assert not wizard.dialog.back.isEnabled()

    def test_cancel_and_continue(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.click(get(wizard).cancel)
        wizard.wait(get(wizard).retry.isVisible)
        assert get(wizard).note.text() == "Stopped. What is here already is kept."
        assert not wizard.dialog.next.isEnabled()
        assert factory.download_gate is not None
        factory.download_gate.set()
        wizard.press(Qt.Key.Key_Return)  # Continue has the focus
        wizard.wait_step(Step.CALIBRATE)

    def test_failure_is_explained_and_tried_again(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.starter_error = DownloadError("It broke off.", why="No network.", action="Look at the cable.")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(get(wizard).problem.isVisible)
        assert get(wizard).problem.text.action.text == "Look at the cable."
        assert not get(wizard).problem.do_anyway.isVisible()
        factory.starter_error = None
        wizard.click(get(wizard).retry)
        wizard.wait_step(Step.CALIBRATE)

    def test_closing_stops_and_the_next_visit_continues_here(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.dialog.close()
        wizard.wait(lambda: not wizard.dialog.isVisible())
        assert wizard.dialog.result() == QDialog.DialogCode.Rejected
        factory.download_gate = None
        again = open_wizard()
        assert again.state.step is Step.GET
        again.click(get(again).retry)
        again.wait_step(Step.CALIBRATE)

    def test_a_hub_model_moves_to_another_folder(
        self, open_wizard: Open, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        factory.download_error = DownloadError("The disk is full.")
        wizard = open_wizard()
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.PLAN)
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(plan(wizard).force.isVisible)
        wizard.click(plan(wizard).force)
        wizard.click(wizard.dialog.next)
        wizard.wait(get(wizard).change.isEnabled)
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "big disk"))
        wizard.click(get(wizard).change)
        factory.download_error = None
        wizard.click(get(wizard).retry)
        wizard.wait_step(Step.CALIBRATE)
        expected = tmp_path / "big disk" / "Mixtral-8x7B-Instruct-v0.1"
        assert factory.downloads[-1][1] == expected
        assert wizard.settings.get(registry.WIZARD_FOLDER) == str(expected)
