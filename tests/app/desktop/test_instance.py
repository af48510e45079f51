from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLockFile
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from app.desktop.handover import Handover
from app.desktop.instance import SingleInstance, Start, remove_if_left_behind, send, socket_names

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a process that takes part."""
    running: list[subprocess.Popen[str]] = []

    def begin(folder: Path, *files: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.app.desktop.instance_process", str(folder), *files]
        running.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate(timeout=20)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_start_hands_its_files_over_and_a_kill_blocks_nothing(run: Run, tmp_path: Path) -> None:
    first = run(tmp_path)
    assert said(first) == "FIRST"
    second = run(tmp_path, "/a chat.json", "/b.zip")
    assert said(second) == "HANDED_OVER"
    assert second.wait(20) == 0
    assert said(first) == "/a chat.json /b.zip"
    first.kill()
    first.wait(20)
    assert (tmp_path / "running.lock").exists()  # left behind, and the socket with it
    third = run(tmp_path)
    assert said(third) == "FIRST"
    assert send(socket_names(tmp_path)[0], Handover((Path("/c"),)))  # the dead one's socket is not in the way
    assert said(third) == "/c"


def test_programs_with_other_folders_run_side_by_side(qtbot: QtBot, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    instances = []
    for folder in (one, other):
        folder.mkdir()
        instances.append(SingleInstance(folder))
        assert instances[-1].begin(Handover()) is Start.FIRST
    for instance in instances:
        instance.end()


def test_a_lock_whose_process_number_is_in_use_again_is_taken_over(qtbot: QtBot, tmp_path: Path) -> None:
    dead = QLockFile(str(tmp_path / "running.lock"))
    assert dead.tryLock(0)
    content = (tmp_path / "running.lock").read_text().split("\n")
    assert content[0] == str(os.getpid())
    dead.unlock()
    (tmp_path / "running.lock").write_text("\n".join(content))  # this process lives, and does not hold it
    instance = SingleInstance(tmp_path)
    assert instance.begin(Handover()) is Start.FIRST
    instance.end()


def test_a_program_that_does_not_answer_is_left_alone(qtbot: QtBot, tmp_path: Path) -> None:
    stuck = QLockFile(str(tmp_path / "running.lock"))
    stuck.setStaleLockTime(0)
    assert stuck.tryLock(0)
    assert not remove_if_left_behind(tmp_path / "running.lock")
    assert SingleInstance(tmp_path).begin(Handover(), patience_ms=100) is Start.UNANSWERED
    stuck.unlock()


def test_nonsense_on_the_socket_is_hung_up_on(qtbot: QtBot, tmp_path: Path) -> None:
    instance = SingleInstance(tmp_path)
    assert instance.begin(Handover()) is Start.FIRST
    heard: list[object] = []
    instance.asked.connect(heard.append)
    socket = QLocalSocket()
    socket.connectToServer(socket_names(tmp_path)[0])
    assert socket.waitForConnected(5000)
    socket.write(b"nonsense\n")
    closed = QLocalSocket.LocalSocketState.UnconnectedState
    qtbot.waitUntil(lambda: socket.state() is closed, timeout=5000)
    assert heard == []
    instance.end()


def test_a_folder_that_cannot_be_written_to_keeps_nobody_from_starting(qtbot: QtBot, tmp_path: Path) -> None:
    instance = SingleInstance(tmp_path / "missing")
    assert instance.begin(Handover()) is Start.FIRST
    instance.end()


def test_sockets_have_names_that_the_system_takes(tmp_path: Path) -> None:
    assert socket_names(tmp_path) == socket_names(tmp_path / "." / "x" / "..")
    deep = tmp_path / ("long" * 50)
    assert socket_names(deep)
    assert all(len(os.fsencode(name)) <= 107 for name in socket_names(deep))
    assert not set(socket_names(deep)) & set(socket_names(tmp_path / ("long" * 51)))


@pytest.mark.skipif(sys.platform == "win32", reason="there, sockets have no place among files")
def test_where_the_folder_can_hold_no_socket_another_place_does(qtbot: QtBot, tmp_path: Path) -> None:
    first, *others = socket_names(tmp_path)
    Path(first).mkdir()
    (Path(first) / "file").touch()  # so that it cannot be taken away
    instance = SingleInstance(tmp_path)
    assert instance.begin(Handover()) is Start.FIRST
    assert any(Path(name).exists() for name in others)
    instance.end()
    assert not any(Path(name).exists() for name in others)
