from __future__ import annotations

import logging
import sys
import threading

import pytest

from app.chat.aside import TURN, run_aside


def wait_for_all() -> None:
    done = threading.Event()
    run_aside(done.set)
    assert done.wait(10)


def test_jobs_run_one_after_the_other_in_another_thread() -> None:
    seen: list[tuple[int, int]] = []
    for number in range(20):
        run_aside(lambda number=number: seen.append((number, threading.get_ident())))
    wait_for_all()
    assert [number for number, _ in seen] == list(range(20))
    assert {thread for _, thread in seen}.isdisjoint({threading.get_ident()})
    assert len({thread for _, thread in seen}) == 1


def test_the_window_gets_its_turn_sooner_while_a_job_runs() -> None:
    turns: list[float] = []
    run_aside(lambda: turns.append(sys.getswitchinterval()))
    wait_for_all()
    assert turns == [pytest.approx(TURN)]


def test_a_job_that_fails_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        run_aside(lambda: 1 / 0)
        wait_for_all()
    assert "a job beside the window failed" in caplog.text
