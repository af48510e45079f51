from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QMainWindow, QSplitter, QWidget
from pytestqt.qtbot import QtBot

from app.settings import SettingsStore, registry
from app.window_place import onto_screens, restore_place, save_place

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

LEFT, RIGHT = QRect(0, 0, 1920, 1040), QRect(1920, 0, 1280, 1024)
places = st.integers(-5000, 5000)
sizes = st.integers(200, 4000)


@given(places, places, sizes, sizes, st.sampled_from([[LEFT], [LEFT, RIGHT], [RIGHT, LEFT]]))
def test_a_window_is_never_out_of_reach(
    x: int, y: int, width: int, height: int, screens: list[QRect]
) -> None:
    window = QRect(x, y, width, height)
    placed = onto_screens(window, screens)
    edge = QRect(placed.x(), placed.y(), placed.width(), 32)  # to move it by
    assert any(edge.intersected(screen).width() >= 120 for screen in screens)
    assert onto_screens(placed, screens) == placed
    assert placed.width() <= width
    assert placed.height() <= height


@given(st.integers(0, 900), st.integers(0, 200))
def test_a_window_that_fits_stays(x: int, y: int) -> None:
    window = QRect(x, y, 1000, 800)
    assert onto_screens(window, [LEFT, RIGHT]) == window


@given(places, places)
def test_a_screen_that_is_gone_keeps_no_window(x: int, y: int) -> None:
    assume(not QRect(x, y, 800, 600).intersects(LEFT))
    assert LEFT.contains(onto_screens(QRect(x, y, 800, 600), [LEFT]))


def test_a_window_as_it_was_on_another_screen_comes_back_onto_this_one(qtbot: QtBot) -> None:
    def made() -> tuple[QMainWindow, QSplitter]:
        window, splitter = QMainWindow(), QSplitter()
        splitter.addWidget(QWidget())
        window.setCentralWidget(splitter)
        qtbot.addWidget(window)
        return window, splitter

    settings = SettingsStore(None)
    window, splitter = made()
    window.setGeometry(9000, 7000, 500, 400)
    save_place(window, splitter, settings)
    assert settings.get(registry.WINDOW_GEOMETRY)
    again, splitter = made()
    restore_place(again, splitter, settings)
    assert again.screen().availableGeometry().contains(again.geometry())
    assert again.size() == window.size()
