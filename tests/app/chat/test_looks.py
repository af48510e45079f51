"""The View menu's commands for themes and zoom, and a message in high contrast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.settings import SettingsStore, registry
from app.theme import theme
from app.theme_colors import load_colors

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture(autouse=True)
def plain_looks() -> Iterator[None]:
    yield
    theme().apply("light")


def test_ctrl_plus_minus_and_0_zoom_the_whole_window(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    before = QApplication.font().pointSizeF()
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(window, Qt.Key.Key_Plus, control)
    qtbot.keyClick(window, Qt.Key.Key_Plus, control | Qt.KeyboardModifier.KeypadModifier)
    assert settings.get(registry.ZOOM) == 125
    assert QApplication.font().pointSizeF() == pytest.approx(1.25 * before)
    qtbot.keyClick(window, Qt.Key.Key_Minus, Qt.KeyboardModifier.ControlModifier)
    assert settings.get(registry.ZOOM) == 110
    qtbot.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.font().pointSizeF() == pytest.approx(before)


@pytest.mark.parametrize("tone", ["light", "dark"])
def test_high_contrast_keeps_the_tone_of_what_is_shown(
    window: MainWindow, settings: SettingsStore, tone: str
) -> None:
    window.menus.actions[f"theme_{tone}"].trigger()
    window.menus.actions["theme_contrast"].trigger()
    assert settings.get(registry.THEME) == f"contrast_{tone}"
    assert theme().colors == load_colors(f"contrast_{tone}")
    window.menus.actions["theme_contrast"].trigger()
    assert settings.get(registry.THEME) == f"contrast_{tone}"


def test_at_the_largest_zoom_nothing_is_cut_beside_and_below_a_chat(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    settings.set(registry.PANEL_VISIBLE, True)
    window.resize(1280, 800)
    button, hint = window.sidebar.new_button, window.page.composer._hint
    before = button.sizeHint().width()
    settings.set(registry.ZOOM, 300)
    qtbot.waitUntil(lambda: button.sizeHint().width() > 2 * before)
    window.splitter.setSizes([0, 500, 500])
    qtbot.waitUntil(lambda: window.page.width() < 600)
    qtbot.waitUntil(lambda: button.width() >= button.sizeHint().width())
    qtbot.waitUntil(lambda: hint.isHidden() or hint.width() >= hint.minimumSizeHint().width())


@pytest.mark.parametrize("points", [0, 48])
def test_no_font_and_zoom_make_the_window_larger_than_the_screen(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, points: int
) -> None:
    settings.set(registry.PANEL_VISIBLE, True)
    screen = window.screen().availableSize()
    window.resize(screen * 0.9)
    settings.set(registry.FONT_SIZE, points)
    settings.set(registry.ZOOM, 200 if points else 300)
    qtbot.waitUntil(lambda: window.sidebar.width() > 300)
    for part in (window.sidebar, window.page, window.panel):
        qtbot.waitUntil(lambda part=part: part.width() >= part.minimumSizeHint().width())  # type: ignore[misc]
    least, frame = window.minimumSize(), window.frameGeometry().size()
    assert (least.width() <= screen.width(), least.height() <= screen.height()) == (True, True)
    assert (frame.width() <= screen.width(), frame.height() <= screen.height()) == (True, True)
    settings.set(registry.FONT_SIZE, 0)
    settings.set(registry.ZOOM, 50)
    qtbot.waitUntil(lambda: window.minimumHeight() < 300)  # it is small again where the parts are
    window.resize(screen)
