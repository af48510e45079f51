from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.desktop.last_run import MAX_CRASH_BYTES, BadEnding, RunMarker
from app.desktop.restart import command_again
from app.dialogs import MessageDialog
from app.fault_dialog import show_ending
from app.storage import ChatStore
from app.storage.errors import Notice
from app.storage.opening import Opened
from app.window import MainWindow
from tests.app.chat.conftest import settings

__all__ = ["settings"]
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def crash_log(tmp_path: Path) -> Path:
    path = tmp_path / "crash.log"
    path.write_text("an old crash\n")
    return path


def test_a_run_that_ended_properly_is_not_spoken_of(tmp_path: Path, crash_log: Path) -> None:
    for _ in range(2):
        marker = RunMarker(tmp_path, crash_log)
        assert marker.begin() is None
        marker.end()


def test_a_killed_run_is_told_apart_from_a_crash(tmp_path: Path, crash_log: Path) -> None:
    assert RunMarker(tmp_path, crash_log).begin() is None
    killed = RunMarker(tmp_path, crash_log).begin()
    assert killed is not None
    assert (killed.crash, bool(killed.started), bool(killed.version)) == ("", True, True)
    with crash_log.open("a") as file:
        file.write("Fatal Python error: Segmentation fault\n")
    crashed = RunMarker(tmp_path, crash_log).begin()
    assert crashed is not None
    assert crashed.crash == "Fatal Python error: Segmentation fault"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"started": 1}'])
def test_a_mark_that_was_cut_off_is_a_bad_ending_too(tmp_path: Path, crash_log: Path, content: str) -> None:
    (tmp_path / "running.json").write_text(content)
    assert RunMarker(tmp_path, crash_log).begin() == BadEnding("", "", "")


def test_of_a_huge_crash_log_the_end_is_kept(tmp_path: Path) -> None:
    crash_log = tmp_path / "crash.log"
    RunMarker(tmp_path, crash_log).begin()
    crash_log.write_text("x" * 10 * MAX_CRASH_BYTES + "the end")
    ending = RunMarker(tmp_path, crash_log).begin()
    assert ending is not None
    assert ending.crash.endswith("the end")
    assert len(ending.crash) <= MAX_CRASH_BYTES


def test_a_folder_that_cannot_be_written_to_costs_the_notice_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    marker = RunMarker(tmp_path / "file" / "logs", tmp_path / "crash.log")
    assert marker.begin() is None
    marker.end()


def test_the_window_says_so_and_offers_details(qtbot: QtBot, window: MainWindow) -> None:
    window.show_bad_ending(BadEnding("2026-01-02 03:04:05", "0.1.0", "Fatal Python error"))
    notice = window.page.run_notice
    assert "did not end properly" in notice.text
    assert "all chats are there" in notice.text
    notice.button.click()
    dialog = window.findChild(MessageDialog)
    assert dialog is not None
    dialog.reject()


def test_nobody_is_told_that_all_chats_are_there_when_they_are_not(qtbot: QtBot, window: MainWindow) -> None:
    window.show_bad_ending(BadEnding("2026-01-02 03:04:05", "0.1.0", ""))
    damaged = Notice("The file with your chats was damaged and has been replaced.")
    window._on_opened(Opened(ChatStore.__new__(ChatStore), (damaged,), saved=True))
    assert "did not end properly" in window.page.run_notice.text
    assert "all chats are there" not in window.page.run_notice.text
    window.page.run_notice.button.click()
    dialog = window.findChild(MessageDialog)
    assert dialog is not None
    assert "all chats are there" not in dialog.accessibleDescription()
    dialog.reject()


def test_without_a_crash_the_details_say_so(qtbot: QtBot, window: MainWindow) -> None:
    dialog = show_ending(window, BadEnding("2026-01-02 03:04:05", "0.1.0", ""))
    assert "ended from outside" in dialog.accessibleDescription()
    dialog.reject()


def test_a_restart_repeats_the_command_without_the_files() -> None:
    original = ["python", "-m", "app", "--data-dir", "here", "a.json", "b.zip"]
    assert command_again(original, "/bin/python3", ["a.json", "b.zip"]) == [
        *("/bin/python3", "-m", "app", "--data-dir", "here")
    ]


CRASH = """
import faulthandler
from app.logs.files import crash_log_path, record_crashes
from app.desktop.last_run import RunMarker
RunMarker(crash_log_path().parent, crash_log_path()).begin()
record_crashes()
faulthandler._sigsegv()
"""


def test_the_stacks_of_a_real_crash_are_found_at_the_next_start(data_dir: Path) -> None:
    (data_dir / "logs").mkdir(parents=True)
    done = subprocess.run([sys.executable, "-c", CRASH], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode != 0
    ending = RunMarker(data_dir / "logs", data_dir / "logs" / "crash.log").begin()
    assert ending is not None
    assert "Current thread" in ending.crash
    assert "<string>" in ending.crash  # where it happened


def test_chats_in_a_new_format_are_still_all_there(qtbot: QtBot, window: MainWindow) -> None:
    window.show_bad_ending(BadEnding("2026-01-02 03:04:05", "0.1.0", ""))
    brought = Notice("Your chats were brought to this version's format.", good=True)
    window._on_opened(Opened(ChatStore.__new__(ChatStore), (brought,), saved=True))
    assert "all chats are there" in window.page.run_notice.text
