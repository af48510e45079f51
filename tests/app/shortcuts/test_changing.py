from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QThreadPool
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.preferences.dialog import PreferencesDialog
from app.preferences.shortcuts_page import ShortcutsPage
from app.settings import SettingsStore, registry
from app.shortcuts.shortcuts import Shortcuts
from app.window import MainWindow
from app.worker import EngineWorker
from tests.app.wizard_fakes import ScriptedKnowledge

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
CTRL, ALT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier


@pytest.fixture
def page(qtbot: QtBot, window: MainWindow, settings: SettingsStore) -> Iterator[ShortcutsPage]:
    made = ShortcutsPage(settings, window.shortcuts)
    qtbot.addWidget(made)
    made.show()
    made.activateWindow()
    yield made
    made.close_page()


def keys_of(window: MainWindow, name: str) -> str:
    return window.menus.actions[name].shortcut().toString()


def press(qtbot: QtBot, page: ShortcutsPage, key: Qt.Key, modifier: Qt.KeyboardModifier = CTRL) -> None:
    qtbot.keyClick(page.change, Qt.Key.Key_Space)
    assert page.change.waiting
    qtbot.keyClick(page.change, key, modifier)


def test_new_keys_work_at_once_and_after_the_next_start(
    qtbot: QtBot, page: ShortcutsPage, window: MainWindow, settings: SettingsStore
) -> None:
    page.choose("new")
    press(qtbot, page, Qt.Key.Key_J)
    assert keys_of(window, "new") == "Ctrl+J"
    assert page.entry is not None
    assert (page.entry.name, page.entry.keys) == ("new", "Ctrl+J")
    window.menus.actions["new"].setShortcut("Ctrl+N")
    Shortcuts(window.menus, settings, window)
    assert keys_of(window, "new") == "Ctrl+J"
    page.reset.click()
    assert keys_of(window, "new") == "Ctrl+N"
    assert settings.get(registry.SHORTCUTS) == ""
    assert not page.reset.isEnabled()


def test_keys_of_another_command_are_told_and_can_be_taken_from_it(
    qtbot: QtBot, page: ShortcutsPage, window: MainWindow
) -> None:
    page.choose("rename")
    press(qtbot, page, Qt.Key.Key_N)
    assert "Ctrl+N belong to “New chat” already." in page.message.text()
    assert keys_of(window, "rename") == ""
    page.take.click()
    assert (keys_of(window, "rename"), keys_of(window, "new")) == ("Ctrl+N", "")
    page.choose("new")
    page.reset.click()
    assert (keys_of(window, "rename"), keys_of(window, "new")) == ("", "Ctrl+N")
    page.reset_all.click()
    assert not page.reset_all.isEnabled()


def test_what_cannot_be_a_shortcut_says_why(qtbot: QtBot, page: ShortcutsPage, window: MainWindow) -> None:
    page.choose("new")
    press(qtbot, page, Qt.Key.Key_V)
    assert "editing text" in page.message.text()
    assert page.take.isHidden()
    press(qtbot, page, Qt.Key.Key_C, ALT)
    assert "open a menu" in page.message.text()
    assert keys_of(window, "new") == "Ctrl+N"


def test_waiting_for_keys_is_no_trap(qtbot: QtBot, page: ShortcutsPage, window: MainWindow) -> None:
    page.choose("new")
    press(qtbot, page, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    assert not page.change.waiting
    press(qtbot, page, Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier)
    assert not page.change.waiting
    assert keys_of(window, "new") == "Ctrl+N"


def test_keys_are_removed_and_found(page: ShortcutsPage, window: MainWindow) -> None:
    page.search.setText("ctrl+f")
    assert page.entry is not None
    assert page.entry.name == "find"
    page.remove.click()
    assert keys_of(window, "find") == ""
    page.search.setText("send the message")
    assert page.entry is not None
    assert page.entry.fixed
    assert not page.change.isEnabled()
    page.search.setText("no such thing")
    assert page.entry is None


def test_the_overlay_shows_the_present_keys_and_gives_the_focus_back(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.activateWindow()
    window.page.focus_composer()
    window.shortcuts.give("find", "Ctrl+Alt+F")
    overlay = window.overlay
    window.menus.actions["shortcuts"].trigger()
    assert overlay.isVisible()
    focused = QApplication.focusWidget()
    assert focused is not None
    assert overlay.isAncestorOf(focused)
    assert "Search chats: Ctrl+Alt+F." in focused.accessibleDescription()
    assert "Send the message" in focused.accessibleDescription()
    for _ in range(3):  # Tab stays inside
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert overlay.isAncestorOf(QApplication.focusWidget() or QWidget())
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert overlay.isHidden()
    assert QApplication.focusWidget() is window.page.composer.edit


def test_the_overlay_closes_though_what_had_the_focus_is_gone(qtbot: QtBot, window: MainWindow) -> None:
    button = QPushButton(window)
    button.show()
    window.activateWindow()
    button.setFocus()
    window.menus.actions["shortcuts"].trigger()
    with qtbot.waitSignal(button.destroyed):
        button.deleteLater()
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert window.overlay.isHidden()


def test_the_overlay_scrolls_only_in_a_window_without_the_room(qtbot: QtBot, window: MainWindow) -> None:
    window.resize(1280, 1000)
    window.menus.actions["shortcuts"].trigger()
    [area] = window.overlay.findChildren(QScrollArea)
    qtbot.waitUntil(lambda: area.widget().height() > 300)
    assert area.verticalScrollBar().maximum() == 0
    window.resize(1280, 500)
    qtbot.waitUntil(lambda: area.verticalScrollBar().maximum() > 0)


def test_a_command_that_leads_elsewhere_closes_the_overlay(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    window.menus.actions["shortcuts"].trigger()
    window.menus.actions["find"].trigger()
    assert window.overlay.isHidden()
    assert QApplication.focusWidget() is window.sidebar.search


@pytest.mark.qt_log_ignore("propagateSizeHints", r"raise\(\)")  # the offscreen platform's remarks
@pytest.mark.parametrize("command", ["about", "export", "parameters", "deleted", "log_window"])
def test_the_zoom_has_its_keys_in_dialogs_too(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, command: str
) -> None:
    window.shortcuts.give("zoom_in", "Ctrl+Alt+Z")
    window.menus.actions[command].trigger()
    (dialog,) = [shown for shown in window.findChildren(QDialog) if shown.isVisible()]
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    qtbot.waitUntil(lambda: dialog.isAncestorOf(QApplication.focusWidget() or QWidget()), timeout=5000)
    control, alt = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier
    qtbot.keyClick(dialog, Qt.Key.Key_Z, control | alt)
    assert settings.get(registry.ZOOM) == 110
    qtbot.keyClick(dialog, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert settings.get(registry.ZOOM) == 100
    dialog.reject()


def test_the_zoom_has_its_keys_in_the_settings_too(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, loaded_worker: EngineWorker
) -> None:
    dialog = PreferencesDialog(
        settings, window.presets, loaded_worker, knowledge=ScriptedKnowledge(), shortcuts=window.shortcuts
    )
    qtbot.addWidget(dialog)
    with qtbot.waitActive(dialog):
        dialog.open()
    qtbot.keyClick(dialog, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: settings.get(registry.ZOOM) > 100)
    qtbot.keyClick(dialog, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert settings.get(registry.ZOOM) == 100
    dialog.accept()
    QThreadPool.globalInstance().waitForDone(5000)


def test_a_page_that_is_closed_follows_no_more_and_may_be_closed_again(
    page: ShortcutsPage, window: MainWindow
) -> None:
    page.choose("new")
    window.shortcuts.give("new", "Ctrl+L")
    assert page.list.currentItem().text(1) == "Ctrl+L (changed)"
    page.close_page()
    page.close_page()
    window.shortcuts.give("new", "Ctrl+J")
    assert page.list.currentItem().text(1) == "Ctrl+L (changed)"
