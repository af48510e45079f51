"""The history of calibrations: listed, compared, and an earlier one taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt, QThreadPool

from app.dialogs import MessageDialog
from app.paths import profiles_dir
from app.preferences.history_dialog import HistoryDialog
from engine.profile_history import FOLDER, history
from engine.profile_store import save_profile
from tests.app.fakes import ScriptedFactory
from tests.app.wizard_fakes import make_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from app.preferences.dialog import PreferencesDialog
    from app.worker import EngineWorker

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark

OLD = make_profile()
NEW = replace(OLD, created="2026-04-01T10:00:00+00:00", measured_decode=OLD.measured_decode / 1.25)


@pytest.fixture
def calibrations(qtbot: QtBot) -> Iterator[HistoryDialog]:
    save_profile(OLD)
    save_profile(NEW)
    dialog = HistoryDialog()
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: dialog.list.topLevelItemCount() == 2)
    yield dialog
    dialog.reject()
    QThreadPool.globalInstance().waitForDone(5000)


def test_lists_them_newest_first_and_says_which_is_in_use(calibrations: HistoryDialog) -> None:
    items = [calibrations.list.topLevelItem(row) for row in range(2)]
    assert [item.text(3) for item in items if item] == ["61.0", "48.8"]
    assert [item.text(4) for item in items if item] == ["in use", ""]
    assert "This one is in use" in calibrations.verdict.text()
    shown = [
        calibrations.figures.topLevelItem(row) for row in range(calibrations.figures.topLevelItemCount())
    ]
    figures = {item.text(0): item.text(1) for item in shown if item}
    assert (figures["Processor"], figures["Measured, tokens per second"]) == ("any", "61.0")
    assert not calibrations.use.isEnabled()


def test_an_earlier_one_is_compared_with_that_in_use_and_taken_back(
    qtbot: QtBot, calibrations: HistoryDialog
) -> None:
    qtbot.keyClick(calibrations.list, Qt.Key.Key_Down)
    assert "25% faster" in calibrations.verdict.text()
    assert calibrations.figures.topLevelItemCount() > 5
    with qtbot.waitSignal(calibrations.taken_back):
        calibrations.use.click()
    assert [each.profile.created for each in history(profiles_dir()).kept if each.in_use] == [OLD.created]
    item = calibrations.list.topLevelItem(1)
    assert item is not None
    assert item.text(4) == "in use"


def test_two_chosen_ones_are_compared_the_older_first(calibrations: HistoryDialog) -> None:
    calibrations.list.selectAll()
    header = calibrations.figures.headerItem()
    assert ("12" in header.text(1), "25% faster" in calibrations.verdict.text()) == (True, True)
    assert not calibrations.use.isEnabled()


def test_what_cannot_be_taken_back_is_said(qtbot: QtBot, calibrations: HistoryDialog) -> None:
    qtbot.keyClick(calibrations.list, Qt.Key.Key_Down)
    kept = profiles_dir() / FOLDER
    kept.rename(kept.with_name("elsewhere"))
    kept.write_text("a file where the folder should be")
    calibrations.use.click()
    qtbot.waitUntil(lambda: bool(calibrations.findChildren(MessageDialog)))
    calibrations.findChildren(MessageDialog)[0].close()


def test_without_any_it_says_so(qtbot: QtBot) -> None:
    dialog = HistoryDialog()
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: dialog.state.text() == "Nothing has been calibrated yet.")
    dialog.reject()


def test_loading_again_is_offered_after_taking_one_back(
    qtbot: QtBot, dialog: PreferencesDialog, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    save_profile(OLD)
    save_profile(NEW)
    page = dialog.model
    assert not page.reload_notice.isVisible()
    page.calibration.history.click()
    listed = page.history
    assert listed is not None
    qtbot.waitUntil(lambda: listed.list.topLevelItemCount() == 2)
    qtbot.keyClick(listed.list, Qt.Key.Key_Down)
    with qtbot.waitSignal(listed.taken_back):
        listed.use.click()
    listed.reject()
    assert page.reload_notice.isVisible()
    with qtbot.waitSignal(loaded_worker.loaded):
        page.reload.click()
    assert not page.reload_notice.isVisible()


def test_one_that_cannot_be_read_is_counted_as_one(qtbot: QtBot) -> None:
    folder = profiles_dir() / FOLDER
    folder.mkdir(parents=True)
    (folder / "odd-one.json").write_text("{", "utf-8")
    dialog = HistoryDialog()
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: dialog.state.text().startswith("1 calibration cannot be read"))
    dialog.reject()
