"""The settings dialog: every setting has an editor that is bound both ways; the model page and its offers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QPushButton,
    QSpinBox,
)

from app.dialogs import MessageDialog
from app.preferences.data_page import DataPage
from app.preferences.dialog import PreferencesDialog
from app.presets.store import PresetStore
from app.settings import OPTIONS, SettingsStore, registry
from app.widgets.problem import ProblemText
from app.worker import EngineWorker
from engine.errors import FileError
from engine.options import LoadOptions
from tests.app.fakes import make_status
from tests.app.wizard_fakes import ScriptedKnowledge

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

VISIBLE = [option for option in OPTIONS if option.visible]


def editor(dialog: PreferencesDialog, key: str) -> Any:
    page = next(page for page in dialog.pages if key in page.editors)
    dialog.show_page(page)
    return page.editors[key]


def complaint(dialog: PreferencesDialog, key: str) -> str:
    page = next(page for page in dialog.pages if key in page.editors)
    return page.complaints[key].text()


def shown(widget: Any) -> Any:
    """What an editor shows, as the setting's value."""
    if isinstance(widget, QCheckBox):
        return widget.isChecked()
    if isinstance(widget, QComboBox):
        return widget.currentData()
    if isinstance(widget, QSpinBox | QDoubleSpinBox):
        return widget.value()
    raise AssertionError(f"no editor of a setting is a {type(widget).__name__}")


def another_value(option: Any, widget: Any) -> Any:
    if isinstance(widget, QComboBox):
        return widget.itemData(widget.count() - 1)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int):
        return min(int(option.maximum), max(int(option.minimum), 20))
    return 0.5


@pytest.mark.parametrize("option", VISIBLE, ids=lambda option: option.key)
def test_every_setting_has_an_editor_that_follows_it(
    dialog: PreferencesDialog, settings: SettingsStore, option: Any
) -> None:
    widget = editor(dialog, option.key)
    assert shown(widget) == option.default
    value = another_value(option, widget)
    settings.set(option, value)
    assert shown(widget) == value
    assert widget.accessibleName() == option.label


@pytest.mark.parametrize("option", VISIBLE, ids=lambda option: option.key)
def test_every_editor_changes_its_setting(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, option: Any
) -> None:
    widget = editor(dialog, option.key)
    value = another_value(option, widget)
    if isinstance(widget, QCheckBox):
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_Space)
    elif isinstance(widget, QComboBox):
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_End)
    else:
        widget.setFocus()
        widget.selectAll()
        qtbot.keyClicks(widget, str(value))
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: settings.get(option) == value)


def test_the_wheel_scrolls_the_page_and_not_the_value(
    dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    box = editor(dialog, "engine.threads")
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(box.mapToGlobal(QPoint(5, 5))),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    dialog.list.setFocus()
    QApplication.sendEvent(box, event)
    assert settings.get(registry.THREADS) == 0


def test_pages_are_reached_with_the_keyboard(qtbot: QtBot, dialog: PreferencesDialog) -> None:
    assert QApplication.focusWidget() is dialog.list
    for page in dialog.pages[1:]:
        qtbot.keyClick(dialog.list, Qt.Key.Key_Down)
        assert page.isVisible()
    qtbot.keyClick(dialog.list, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


@pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark on dialogs that wrap text
def test_what_cannot_be_saved_is_said(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FileError("The settings could not be saved.", why="The disk is full.")

    monkeypatch.setattr(settings, "update", full)
    editor(dialog, "panel.visible").click()
    [message] = dialog.findChildren(MessageDialog)
    [text] = message.findChildren(ProblemText)
    assert (text.what.text, text.why.text) == ("The settings could not be saved.", "The disk is full.")
    message.close()


class TestDataPage:
    def test_opens_the_data_folder_and_the_log(
        self, dialog: PreferencesDialog, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[QUrl] = []
        monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
        dialog.show_page(dialog.data)
        for button in (dialog.data.folder, dialog.data.log):
            assert isinstance(button, QPushButton)
            button.click()
        assert [Path(url.toLocalFile()) for url in opened] == [data_dir, data_dir / "logs"]
        assert data_dir.is_dir()

    def test_opens_a_data_folder_whose_name_has_an_ending(
        self, qtbot: QtBot, settings: SettingsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "fiddler.d"))
        opened: list[QUrl] = []
        monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
        page = DataPage(settings, ScriptedKnowledge())
        qtbot.addWidget(page)
        page.folder.click()
        assert [Path(url.toLocalFile()) for url in opened] == [tmp_path / "fiddler.d"]
        page.close_page()

    @pytest.mark.qt_log_ignore("propagateSizeHints")
    def test_restores_the_defaults_after_asking(
        self, qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore
    ) -> None:
        settings.set(registry.THREADS, 3)
        dialog.show_page(dialog.data)
        dialog.data.defaults.click()
        [question] = dialog.findChildren(MessageDialog)
        assert settings.get(registry.THREADS) == 3
        question.accept()
        assert settings.get(registry.THREADS) == 0
        assert settings.get(registry.MODEL_PATH) == "/models/starter"  # not a setting that the user chooses
        assert editor(dialog, "engine.threads").value() == 0


@pytest.mark.parametrize("way", ["escape", "close button", "window"])
def test_what_is_still_being_typed_is_kept_when_the_dialog_goes(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, way: str
) -> None:
    box = editor(dialog, "engine.threads")
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "7")
    assert settings.get(registry.THREADS) == 0
    if way == "escape":
        qtbot.keyClick(box, Qt.Key.Key_Escape)
    elif way == "window":
        dialog.close()
    else:
        dialog.close_button.click()
    assert settings.get(registry.THREADS) == 7


def test_a_closed_dialog_listens_no_more(dialog: PreferencesDialog, settings: SettingsStore) -> None:
    dialog.accept()
    assert settings._listeners == []


def test_load_options_that_were_forced_are_not_a_change(
    qtbot: QtBot, settings: SettingsStore, worker: EngineWorker, knowledge: ScriptedKnowledge
) -> None:
    with qtbot.waitSignal(worker.loaded):
        worker.load(Path("/models/starter"), LoadOptions(force=True))
    dialog = PreferencesDialog(
        settings, PresetStore(None, settings), worker, make_status(), knowledge=knowledge
    )
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.model.reload_notice.isVisible()
    dialog.accept()
