import threading

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.task import ProgressDialog, Task
from engine.errors import EngineError
from engine.progress import CancelToken, Progress, ProgressCallback

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    return widget


def test_short_work_shows_no_window(qtbot: QtBot, window: QWidget) -> None:
    done: list[int] = []
    Task(window, "Counting", lambda _report, _cancel: 7, done.append, pytest.fail)
    qtbot.waitUntil(lambda: done == [7], timeout=5000)
    qtbot.waitUntil(lambda: window.findChild(ProgressDialog) is None, timeout=5000)


def test_long_work_shows_how_far_it_is_and_can_be_cancelled(qtbot: QtBot, window: QWidget) -> None:
    ended = threading.Event()

    def work(report: ProgressCallback, cancel: CancelToken) -> None:
        report(Progress("Counting sheep", 1, 4))
        assert cancel._event.wait(10)
        ended.set()
        cancel.raise_if_cancelled()

    task = Task(window, "Counting", work, pytest.fail, pytest.fail)
    dialog = task.dialog
    qtbot.waitUntil(dialog.isVisible, timeout=5000)
    qtbot.waitUntil(lambda: dialog.progress.what.text() == "Counting sheep", timeout=5000)
    assert dialog.progress.bar.value() == dialog.progress.bar.maximum() // 4
    dialog.reject()
    assert ended.wait(5)
    qtbot.waitUntil(lambda: window.findChild(ProgressDialog) is None, timeout=5000)


def test_an_error_is_told(qtbot: QtBot, window: QWidget) -> None:
    failed: list[EngineError] = []

    def work(_report: ProgressCallback, _cancel: CancelToken) -> None:
        raise EngineError("The disk is full.")

    Task(window, "Counting", work, pytest.fail, failed.append)
    qtbot.waitUntil(lambda: bool(failed), timeout=5000)
    assert failed[0].what == "The disk is full."
