"""A hidden panel costs nothing: counted in calls of its code, readings of the machine and timers."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

import app.panel
from app.panel.machine import MachineReading, Use
from app.panel.panel import CALM_MS, LivePanel
from engine.events import GenerationStats
from tests.app.fakes import make_status
from tests.app.figures import stats_after
from tests.app.panel.rows import answer_row

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
CODE = str(Path(app.panel.__file__).parent)
TOKENS = 400


def calls_of(work: Callable[[], None]) -> Counter[str]:
    """How often functions of app/panel are called meanwhile, by name."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(CODE):
            counted[frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


@pytest.fixture
def reads() -> list[None]:
    return []


@pytest.fixture
def window(qtbot: QtBot, reads: list[None]) -> QMainWindow:
    def read(gpu_index: int | None) -> MachineReading:
        reads.append(None)
        return MachineReading(Use(2, 1))

    # What earlier tests left to be deleted would end in the midst of the counting.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    made = QMainWindow()
    made.setCentralWidget(LivePanel(read=read))
    qtbot.addWidget(made)
    return made


@pytest.fixture
def panel(window: QMainWindow) -> LivePanel:
    made = window.centralWidget()
    assert isinstance(made, LivePanel)
    return made


def feed(qtbot: QtBot, panel: LivePanel, figures: list[GenerationStats]) -> Counter[str]:
    """The calls that an answer causes: its figures one by one, with Qt's events handled in between."""

    def work() -> None:
        for stats in figures:
            panel.show_stats(stats)
            qtbot.wait(0)

    return calls_of(work)


def test_a_hidden_panel_only_keeps_what_comes(
    qtbot: QtBot, window: QMainWindow, panel: LivePanel, reads: list[None]
) -> None:
    figures = [stats_after(tokens % 40) for tokens in range(TOKENS)]
    panel.show_chat(1, [answer_row(number) for number in range(50)])
    panel.show_status(make_status())
    calls = feed(qtbot, panel, figures)
    assert calls == {"show_stats": TOKENS, "show_running": TOKENS, "_tell": TOKENS}
    assert not any(timer.isActive() for timer in panel.findChildren(QTimer))
    assert calls_of(lambda: qtbot.wait(300)) == {}  # nor does anything else come later
    assert reads == []


def test_hiding_stops_what_showing_started(
    qtbot: QtBot, window: QMainWindow, panel: LivePanel, reads: list[None]
) -> None:
    window.show()
    panel.show_status(make_status())
    panel.show_stats(stats_after(10))
    qtbot.waitUntil(lambda: len(reads) == 1)
    panel.hide()
    calls = feed(qtbot, panel, [stats_after(11)] * 100)
    assert set(calls) == {"show_stats", "show_running", "_tell"}
    assert not any(timer.isActive() for timer in panel.findChildren(QTimer))
    panel.show()
    assert panel.speed.rows["answer"].text().startswith("11\u00a0tokens")


def test_a_minimised_window_is_as_good_as_a_hidden_panel(
    qtbot: QtBot, window: QMainWindow, panel: LivePanel
) -> None:
    window.show()
    panel.show_status(make_status())
    window.showMinimized()
    qtbot.waitUntil(lambda: not any(timer.isActive() for timer in panel.findChildren(QTimer)))
    calls = feed(qtbot, panel, [stats_after(11)] * 100)
    assert set(calls) == {"show_stats", "show_running", "_tell"}
    window.showNormal()
    qtbot.waitUntil(lambda: panel.speed.rows["answer"].text().startswith("11\u00a0tokens"))


def test_a_visible_panel_refreshes_a_few_times_a_second(
    qtbot: QtBot, window: QMainWindow, panel: LivePanel
) -> None:
    window.show()
    panel.show_status(make_status())

    def work() -> None:
        for tokens in range(60):
            panel.show_stats(stats_after(tokens % 30 + 1))
            qtbot.wait(10)

    begin = time.monotonic()
    refreshes = calls_of(work)["_refresh"]
    passed = time.monotonic() - begin  # on a busy computer the waits are longer
    assert 2 <= refreshes <= 3 + 1000 * passed / CALM_MS
    qtbot.waitUntil(lambda: panel.speed.rows["answer"].text().startswith("30\u00a0tokens"))
