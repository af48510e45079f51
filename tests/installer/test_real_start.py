"""The program on a real screen: wizard, calibration and a first answer, by keyboard alone; and a kill."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from installer.real_screen import Screen, real_screen, wait_until

# Another program under test, such as the packaged one: FIDDLER_PROGRAM=dist/fiddler-chat/fiddler-chat
PROGRAM = shlex.split(os.environ.get("FIDDLER_PROGRAM", "")) or [sys.executable, "-m", "app"]
ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("Xvfb") or not shutil.which("xdotool"), reason="needs Xvfb and xdotool"
    ),
]


@contextmanager
def started(screen: Screen, data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program running on `screen` with its data in `data`; ended with the block if it still runs."""
    environment = {**screen.environment, "FIDDLER_DATA_DIR": str(data)}
    program = subprocess.Popen(PROGRAM, cwd=ROOT, env=environment)
    try:
        yield program
    finally:
        if program.poll() is None:
            program.terminate()
            program.wait(timeout=30)


def messages(data: Path) -> list[tuple[str, str, str]]:
    """Role, text and state of every message in the database, read beside the running program."""
    with closing(sqlite3.connect(f"file:{data / 'chats.sqlite3'}?mode=ro", uri=True, timeout=10)) as database:
        return database.execute("SELECT role, content, state FROM message ORDER BY id").fetchall()


def answer(data: Path, state: str) -> str | None:
    """The text of the last answer if it is in `state`, None otherwise."""
    rows = messages(data)
    return rows[-1][1] if rows and rows[-1][0] == "assistant" and rows[-1][2] == state else None


def go_on_to(screen: Screen, page: str, seconds: float) -> None:
    """Press the wizard's Next (Alt+N) until the next page is there: it is disabled while a page works."""

    def look() -> str | None:
        found = screen.window(f"^{page}")
        if found is None:
            screen.press("alt+n")
            time.sleep(0.4)
        return found

    wait_until(look, seconds, f"the wizard's page {page!r}")


def walk_through_the_wizard(screen: Screen) -> None:
    screen.wait_for_window("^Fiddler Chat$", 60)
    screen.wait_for_window("^Your computer", 60)
    go_on_to(screen, "Model and plan", 60)
    screen.press("space")  # the starter model is the first choice
    go_on_to(screen, "Get the model", 30)
    go_on_to(screen, "Calibrate", 400)
    go_on_to(screen, "Result", 400)
    screen.press("Return")
    wait_until(lambda: None if screen.window("^Result") else True, 60, "the wizard's end")


def ask(screen: Screen, question: str) -> None:
    screen.wait_for_window("Fiddler Chat$", 30)
    screen.type(question)
    screen.press("Return")


def test_a_newcomer_reaches_an_answer_by_keyboard_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with real_screen() as screen:
        with started(screen, data) as program:
            walk_through_the_wizard(screen)
            ask(screen, "What is the capital of France?")
            first = wait_until(lambda: answer(data, "complete"), 120, "a complete answer")
            assert "Paris" in first
            assert program.poll() is None

            ask(screen, "Write a long story about a lighthouse keeper and the sea.")
            partial = wait_until(lambda: answer(data, "streaming") or None, 120, "a partial answer")
            program.send_signal(signal.SIGKILL)
            program.wait(timeout=30)

        with started(screen, data) as program:
            screen.wait_for_window("Fiddler Chat$", 60)
            kept = wait_until(lambda: answer(data, "interrupted"), 60, "the answer marked as interrupted")
            assert kept.startswith(partial)
            assert [text for role, text, _ in messages(data) if role == "user"] == [
                "What is the capital of France?",
                "Write a long story about a lighthouse keeper and the sea.",
            ]
            assert screen.window("^Your computer") is None
            program.send_signal(signal.SIGTERM)
            assert program.wait(timeout=30) == 0
