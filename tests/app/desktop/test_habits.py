from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QApplication, QStyle
from pytestqt.qtbot import QtBot

from app.desktop.announcer import Announcer
from app.desktop.habits import Habits
from app.desktop.motion import apply_motion
from app.settings import SettingsStore, registry
from app.widgets.announce import announce
from app.window import MainWindow
from app.worker import EngineWorker
from tests.app.chat.conftest import settings
from tests.app.fakes import ScriptedFactory

__all__ = ["settings"]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def ask(qtbot: QtBot, window: MainWindow) -> None:
    window.session.send("Hello")
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def test_sentences_are_said_as_they_end_and_not_when_switched_off(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, factory: ScriptedFactory
) -> None:
    said: list[str] = []
    announcer = Announcer(window.session, settings, said.append, window, is_heard=lambda: True)
    factory.script = ["One sent", "ence. And", " another"]
    ask(qtbot, window)
    assert said == ["One sentence.", "And another", "The answer is complete."]
    settings.set(registry.ANNOUNCE, False)
    ask(qtbot, window)
    assert len(said) == 3
    assert announcer.parent() is window


def test_without_a_screen_reader_nothing_is_said(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    said: list[str] = []
    Announcer(window.session, settings, said.append, window, is_heard=lambda: False)
    ask(qtbot, window)
    assert said == []


def test_a_text_is_said_politely_in_the_views_name(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[QAccessibleAnnouncementEvent] = []
    politely = QAccessible.AnnouncementPoliteness
    listening = SimpleNamespace(AnnouncementPoliteness=politely, updateAccessibility=events.append)
    monkeypatch.setattr("app.widgets.announce.QAccessible", listening)
    announce(window.page.view, "One sentence.")
    (event,) = events
    assert event.object() is window.page.view
    assert event.message() == "One sentence."
    assert event.politeness() is politely.Polite
    QAccessible.updateAccessibility(event)  # Qt would warn, and so fail this test, of an event amiss


@pytest.fixture
def still(settings: SettingsStore, window: MainWindow) -> Iterator[None]:
    settings.set(registry.REDUCED_MOTION, True)
    apply_motion(settings)
    yield
    settings.set(registry.REDUCED_MOTION, False)
    apply_motion(settings)


def test_with_less_motion_nothing_moves_by_itself(
    window: MainWindow, settings: SettingsStore, still: None
) -> None:
    duration = QStyle.StyleHint.SH_Widget_Animation_Duration
    progress = window.page.strip.progress
    assert window.style().styleHint(duration, None, progress) == 0
    assert QApplication.cursorFlashTime() == 0
    assert not QApplication.isEffectEnabled(Qt.UIEffect.UI_AnimateMenu)
    settings.set(registry.REDUCED_MOTION, False)
    apply_motion(settings)
    assert window.style().styleHint(duration, None, progress) > 0
    assert QApplication.cursorFlashTime() > 0


def test_the_habits_follow_the_settings_until_the_end(
    window: MainWindow, worker: EngineWorker, settings: SettingsStore
) -> None:
    listeners = len(settings._listeners)
    habits = Habits(window, worker, settings)
    settings.set(registry.REDUCED_MOTION, True)
    assert QApplication.cursorFlashTime() == 0
    settings.set(registry.REDUCED_MOTION, False)
    assert QApplication.cursorFlashTime() > 0
    habits.end()
    assert len(settings._listeners) == listeners
