from __future__ import annotations

import sys
import threading
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.chat.aside import TURN, run_aside
from app.widgets.errand import Errand


class Listener(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[tuple[object, Exception | None]] = []

    def on_end(self, errand: Errand[Any]) -> None:
        self.outcomes.append((errand.result, errand.error))


def test_jobs_run_one_after_the_other_in_another_thread(qtbot: QtBot) -> None:
    listener = Listener()
    for number in range(20):
        run_aside(lambda number=number: (number, threading.get_ident()), listener.on_end)
    qtbot.waitUntil(lambda: len(listener.outcomes) == 20)
    seen = [cast(tuple[int, int], result) for result, _ in listener.outcomes]
    assert [number for number, _ in seen] == list(range(20))
    assert {thread for _, thread in seen}.isdisjoint({threading.get_ident()})
    assert len({thread for _, thread in seen}) == 1


def test_the_window_gets_its_turn_sooner_while_a_job_runs(qtbot: QtBot) -> None:
    usual = sys.getswitchinterval()
    listener = Listener()
    run_aside(sys.getswitchinterval, listener.on_end)
    qtbot.waitUntil(lambda: bool(listener.outcomes))
    assert listener.outcomes == [(pytest.approx(TURN), None)]
    qtbot.waitUntil(lambda: sys.getswitchinterval() == pytest.approx(usual))


def test_a_job_that_fails_is_told_of_and_the_next_one_runs(qtbot: QtBot) -> None:
    listener = Listener()
    run_aside(lambda: 1 / 0, listener.on_end)
    run_aside(lambda: 1, listener.on_end)
    qtbot.waitUntil(lambda: len(listener.outcomes) == 2)
    assert isinstance(listener.outcomes[0][1], ZeroDivisionError)
    assert listener.outcomes[1] == (1, None)
