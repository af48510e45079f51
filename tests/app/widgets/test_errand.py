"""The rule that all of these are about: what a job refers to never ends in the other thread."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject, QThread
from pytestqt.qtbot import QtBot

from app.widgets.errand import Errand

HERE = threading.get_ident


class Marked:
    """Notes in which thread it ends."""

    def __init__(self, ends: list[int]) -> None:
        self._ends = ends

    def look(self) -> int:
        return 42

    def fail(self) -> int:
        mine = self  # held by the frame, and so by the error
        raise ValueError(mine)

    def __del__(self) -> None:
        self._ends.append(HERE())


class Asker(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[object, Exception | None, bool]] = []

    def on_end(self, errand: Errand[int]) -> None:
        self.told.append((errand.result, errand.error, QThread.currentThread() is self.thread()))


def elsewhere(run: Callable[[], None]) -> tuple[threading.Thread, threading.Event]:
    """Runs it in a thread that goes on holding it until the event is set, as a queue's does."""
    over, ran = threading.Event(), threading.Event()

    def work(run: Callable[[], None]) -> None:
        run()
        ran.set()
        assert over.wait(10)

    thread = threading.Thread(target=work, args=(run,))
    thread.start()
    assert ran.wait(10)
    return thread, over


@pytest.mark.parametrize("fails", [False, True])
def test_what_the_work_refers_to_ends_in_the_gui_thread(qtbot: QtBot, fails: bool) -> None:
    ends: list[int] = []
    asker = Asker()
    marked = Marked(ends)
    errand = Errand(marked.fail if fails else marked.look, asker.on_end)
    del marked
    thread, over = elsewhere(errand.run)
    del errand
    qtbot.waitUntil(lambda: bool(asker.told))
    asker.told.clear()
    gc.collect()  # an error and its frames are a ring
    assert ends == [HERE()]  # although the other thread still holds the errand
    over.set()
    thread.join()
    assert ends == [HERE()]


def test_the_work_ends_in_the_gui_thread_even_if_the_other_is_done_with_it_before(qtbot: QtBot) -> None:
    ends: list[int] = []
    asker = Asker()
    errand = Errand(Marked(ends).look, asker.on_end)
    thread, over = elsewhere(errand.run)
    del errand
    over.set()
    thread.join()
    assert ends == []
    qtbot.waitUntil(lambda: bool(asker.told))
    assert ends == [HERE()]


def test_tells_of_the_result_and_of_the_error_in_the_gui_thread(qtbot: QtBot) -> None:
    asker = Asker()
    for work in (Marked([]).look, Marked([]).fail):
        thread, over = elsewhere(Errand(work, asker.on_end).run)
        over.set()
        thread.join()
    qtbot.waitUntil(lambda: len(asker.told) == 2)
    assert asker.told[0] == (42, None, True)
    assert asker.told[1][0] is None
    assert isinstance(asker.told[1][1], ValueError)


def test_nobody_is_told_who_is_gone(qtbot: QtBot) -> None:
    ends: list[int] = []
    told: list[object] = []

    class Gone(QObject):
        def on_end(self, errand: Errand[int]) -> None:
            told.append(errand)

    asker, deleted = Gone(), Gone()
    errands = [Errand(Marked(ends).look, one.on_end) for one in (asker, deleted)]
    deleted.deleteLater()
    qtbot.wait(20)
    del asker
    for errand in errands:
        thread, over = elsewhere(errand.run)
        over.set()
        thread.join()
    errands.clear()
    del errand
    qtbot.waitUntil(lambda: len(ends) == 2)
    assert told == []


def test_a_failure_of_whoever_is_told_keeps_nothing(qtbot: QtBot) -> None:
    ends: list[int] = []

    class Failing(QObject):
        def on_end(self, errand: Errand[int]) -> None:
            raise RuntimeError

    asker = Failing()
    with qtbot.captureExceptions() as exceptions:
        thread, over = elsewhere(Errand(Marked(ends).look, asker.on_end).run)
        qtbot.waitUntil(lambda: bool(exceptions))
        assert ends == [HERE()]
        over.set()
        thread.join()
