"""What the computer is: found, shown, looked for again."""

from __future__ import annotations

import threading

from PySide6.QtGui import QGuiApplication

from engine.errors import (
    HardwareError,
)
from tests.app.wizard.access import (
    Open,
    computer,
)
from tests.app.wizard_fakes import LAPTOP, ScriptedKnowledge


class TestComputer:
    def test_says_what_was_found_and_copies_it(self, open_wizard: Open) -> None:
        wizard = open_wizard()
        wizard.click(computer(wizard).copy)
        text = QGuiApplication.clipboard().text()
        assert LAPTOP.cpu.name in text
        assert LAPTOP.gpu_message in text

    def test_looks_while_the_window_stays_usable(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.detect_gate = threading.Event()
        wizard = open_wizard()
        wizard.wait(computer(wizard).progress.isVisible)
        assert not wizard.dialog.next.isEnabled()
        knowledge.detect_gate.set()
        wizard.wait(wizard.dialog.next.isEnabled)
        assert not computer(wizard).progress.isVisible()

    def test_failure_is_explained_and_repeated(self, open_wizard: Open, knowledge: ScriptedKnowledge) -> None:
        knowledge.detect_error = HardwareError("It cannot be used.", why="Because.", action="Do this.")
        wizard = open_wizard()
        wizard.wait(computer(wizard).problem.isVisible)
        assert computer(wizard).problem.text.what.text == "It cannot be used."
        assert not wizard.dialog.next.isEnabled()
        knowledge.detect_error = None
        wizard.click(computer(wizard).again)
        wizard.wait(wizard.dialog.next.isEnabled)
        assert not computer(wizard).problem.isVisible()
