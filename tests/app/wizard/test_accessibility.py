from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.wizard.state import Step
from tests.app.walking import look_through, stray_windows
from tests.app.wizard.access import Open, choose_starter

__all__ = ["stray_windows"]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_every_page_can_be_walked_through_and_read(qtbot: QtBot, open_wizard: Open) -> None:
    wizard = open_wizard()
    wizard.wait(wizard.dialog.next.isEnabled)
    found = {"computer": look_through(qtbot, wizard.dialog)}
    choose_starter(wizard)
    found["plan"] = look_through(qtbot, wizard.dialog)
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.CALIBRATE)
    wizard.wait(wizard.dialog.next.isEnabled)
    found["calibrate"] = look_through(qtbot, wizard.dialog)
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.RESULT)
    wizard.wait(wizard.dialog.next.isEnabled)
    found["result"] = look_through(qtbot, wizard.dialog)
    assert {name: faults for name, faults in found.items() if faults} == {}
    wizard.dialog.reject()
