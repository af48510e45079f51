"""Everything by the keyboard alone: nothing here calls the program, it only presses keys and looks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QMenu, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage
from app.preferences.dialog import PreferencesDialog
from app.settings import SettingsStore, registry
from app.setup_flow import SetupFlow
from app.storage import MessageState
from app.window import MainWindow
from app.worker import EngineWorker
from tests.app.chat.conftest import settings, storage, window
from tests.app.fakes import ScriptedFactory
from tests.app.walking import describe, stray_windows
from tests.app.wizard_fakes import ScriptedKnowledge

__all__ = ["settings", "storage", "stray_windows", "window"]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "raise", "grabbing")

CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)
NONE = Qt.KeyboardModifier.NoModifier
Key = Qt.Key


class Hands:
    """Two hands on a keyboard, and eyes on the screen."""

    def __init__(self, bot: QtBot, window: MainWindow) -> None:
        self.bot, self.window = bot, window

    @property
    def focused(self) -> QWidget:
        return QApplication.activePopupWidget() or QApplication.focusWidget() or self.window

    def press(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = NONE) -> None:
        QTest.keyClick(self.focused, key, modifiers)

    def type(self, text: str) -> None:
        QTest.keyClicks(self.focused, text)

    def wait(self, condition: Callable[[], object]) -> None:
        self.bot.waitUntil(lambda: bool(condition()), timeout=5000)

    def tab_to(self, name: str) -> None:
        """Press Tab until the focus is at what a screen reader calls so."""
        for _ in range(150):
            interface = QAccessible.queryAccessibleInterface(self.focused)
            if interface is not None and interface.text(QAccessible.Text.Name) == name:
                return
            self.press(Key.Key_Tab)
        raise AssertionError(f"Tab never reaches “{name}”; it is at {describe(self.focused)}")

    def choose(self, menu: Qt.Key, entry: Qt.Key) -> None:
        """Open a menu by its letter, and choose an entry by its own."""
        self.press(menu, ALT)
        self.wait(lambda: isinstance(QApplication.activePopupWidget(), QMenu))
        self.press(entry)

    def ask(self, text: str) -> None:
        self.type(text)
        self.press(Key.Key_Return)
        self.wait(lambda: self.window.session.busy)
        self.wait(lambda: not self.window.session.busy)

    def back(self) -> None:
        """Wait until no dialog is open; then the desktop gives the window the keyboard, as desktops do."""
        self.wait(lambda: not any(dialog.isVisible() for dialog in self.window.findChildren(QDialog)))
        self.window.activateWindow()
        self.wait(lambda: QApplication.activeWindow() is self.window)

    def dialog(self, kind: type[QDialog]) -> QDialog:
        """The dialog that has opened, once it is in front."""
        self.wait(lambda: isinstance(QApplication.activeWindow(), kind))
        dialog = QApplication.activeWindow()
        assert isinstance(dialog, kind)
        return dialog


@pytest.fixture
def hands(qtbot: QtBot, window: MainWindow, worker: EngineWorker, settings: SettingsStore) -> Hands:
    SetupFlow(window, worker, settings, ScriptedKnowledge())
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window, timeout=5000)
    return Hands(qtbot, window)


def answer(window: MainWindow) -> AssistantMessage:
    last = window.page.view.views[-1]
    assert isinstance(last, AssistantMessage)
    return last


def titles(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def test_a_chat_from_its_first_word_to_the_archive(
    hands: Hands, window: MainWindow, factory: ScriptedFactory
) -> None:
    # Write, send, stop.
    hands.press(Key.Key_N, CTRL)
    factory.gate = threading.Event()
    hands.type("Where is Rome")
    hands.press(Key.Key_Return)
    hands.wait(lambda: factory.emitted == 1)
    hands.press(Key.Key_Escape)
    hands.wait(lambda: not window.session.busy)
    assert answer(window).row.state is MessageState.STOPPED
    # Edit the question, then turn back to its first version.
    factory.gate = None
    hands.press(Key.Key_E, CTRL | SHIFT)
    hands.type(" today")
    hands.press(Key.Key_Return, CTRL)
    hands.wait(lambda: answer(window).content() == "Paris is the capital.")
    hands.wait(lambda: not window.session.busy)
    hands.tab_to("Earlier version")
    hands.press(Key.Key_Space)
    hands.wait(lambda: answer(window).row.state is MessageState.STOPPED)
    # Another answer.
    hands.press(Key.Key_R, CTRL)
    hands.wait(lambda: answer(window).content() == "Paris is the capital.")
    hands.wait(lambda: not window.session.busy)
    # A second chat; the search finds the first one and opens it.
    hands.press(Key.Key_N, CTRL)
    factory.script = ["Nothing to do with it."]
    hands.ask("Pears")
    hands.press(Key.Key_F, CTRL)
    hands.type("capital")
    hands.wait(lambda: titles(window) == ["Where is Rome"])
    hands.press(Key.Key_Down)
    hands.press(Key.Key_Return)
    hands.wait(lambda: window.windowTitle().startswith("Where is Rome"))
    # Pinned it stands first, archived it is gone, and comes back.
    hands.press(Key.Key_F, CTRL)
    hands.press(Key.Key_A, CTRL)
    hands.press(Key.Key_Delete)
    hands.wait(lambda: titles(window) == ["Pears", "Where is Rome"])
    hands.press(Key.Key_P, CTRL | SHIFT)
    hands.wait(lambda: titles(window) == ["Where is Rome", "Pears"])
    hands.press(Key.Key_A, CTRL | SHIFT)
    hands.wait(lambda: titles(window) == ["Pears"])
    hands.tab_to("Undo")
    hands.press(Key.Key_Space)
    hands.wait(lambda: titles(window) == ["Where is Rome", "Pears"])


def test_out_into_a_file_and_back(
    hands: Hands, window: MainWindow, settings: SettingsStore, tmp_path: Path
) -> None:
    settings.update({"export.folder": str(tmp_path), "export.format": "json"})
    hands.ask("Take me along")
    hands.press(Key.Key_E, CTRL)
    dialog = hands.dialog(QDialog)
    hands.wait(lambda: dialog.findChild(QWidget) is not None and _default_is_enabled(dialog))
    hands.press(Key.Key_Return)
    path = tmp_path / "Take me along.json"
    hands.wait(path.exists)
    hands.back()
    hands.choose(Key.Key_C, Key.Key_I)
    hands.dialog(QFileDialog)
    hands.type(str(path))
    hands.press(Key.Key_Return)
    hands.wait(lambda: isinstance(QApplication.activeWindow(), QDialog))  # it is here already
    hands.press(Key.Key_Escape)
    hands.back()
    assert titles(window) == ["Take me along"]


def _default_is_enabled(dialog: QDialog) -> bool:
    return any(button.isDefault() and button.isEnabled() for button in dialog.findChildren(QPushButton))


def test_the_settings_the_panel_the_keys_and_the_end(
    hands: Hands, window: MainWindow, settings: SettingsStore, factory: ScriptedFactory
) -> None:
    hands.press(Key.Key_Comma, CTRL)
    dialog = hands.dialog(PreferencesDialog)
    assert isinstance(dialog, PreferencesDialog)
    hands.tab_to("Pages")
    for page in dialog.pages:
        hands.wait(page.isVisible)
        hands.press(Key.Key_Down)
    hands.press(Key.Key_Home)
    hands.press(Key.Key_Tab)
    assert dialog.pages[0].isAncestorOf(hands.focused)
    hands.press(Key.Key_Escape)
    hands.back()
    shown = settings.get(registry.PANEL_VISIBLE)
    hands.press(Key.Key_F10)
    assert settings.get(registry.PANEL_VISIBLE) is not shown
    hands.press(Key.Key_F1)
    assert window.overlay.isVisible()
    hands.press(Key.Key_Escape)
    assert window.overlay.isHidden()
    hands.press(Key.Key_Q, CTRL)
    hands.wait(window.isHidden)
    assert factory.engine.closed
