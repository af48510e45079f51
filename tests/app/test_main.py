from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.desktop.last_run import RunMarker
from app.fault_dialog import FaultDialog
from app.faults import FaultReporter, tell_of_failed_start
from app.logs.files import start_logging
from app.main import choose_input_method, main
from app.paths import log_path
from app.storage import MessageState, open_store

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

# The real program with a scripted engine: sends a message as soon as the model is loaded.
PROGRAM = """
import sys, threading
from app.main import main
from app.window import MainWindow
from tests.app.fakes import ScriptedFactory

factory = ScriptedFactory()
factory.script = ["A beginning", " and more", " and the end"]
begin = MainWindow.begin

def act(window):
    begin(window)
    {action}

MainWindow.begin = act
sys.exit(main(["--data-dir", *sys.argv[1:]], factory))
"""
ASK = """
    factory.gate = threading.Event()
    window.model.status_changed.connect(lambda status: window.session.send("Hello"))
"""


def start(folder: Path, action: str, *files: Path) -> subprocess.Popen[bytes]:
    (folder / "model").mkdir(parents=True, exist_ok=True)
    model = (folder / "model").as_posix()
    (folder / "settings.toml").write_text(f'[wizard]\ncompleted = true\n[model]\npath = "{model}"\n')
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    source = PROGRAM.replace("{action}", action.strip())
    command = [sys.executable, "-c", source, str(folder), *map(str, files)]
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def wait_for_text(folder: Path, text: str, seconds: float = 40) -> None:
    """Until the store holds a message with exactly this text."""
    database = folder / "chats.sqlite3"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if database.exists():
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                try:
                    rows = connection.execute("SELECT content FROM message").fetchall()
                except sqlite3.OperationalError:
                    rows = []  # not migrated yet
            connection.close()
            if (text,) in rows:
                return
        time.sleep(0.05)
    raise TimeoutError(f"{text!r} was never saved")


def test_starting_the_window_imports_nothing_heavy() -> None:
    code = "import sys, app.main; print(*sorted(sys.modules))"
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "PySide6" in loaded
    assert not loaded & {"torch", "transformers", "huggingface_hub", "tokenizers", "safetensors", "pynvml"}


def test_a_killed_program_leaves_its_half_answer_marked_interrupted(tmp_path: Path) -> None:
    program = start(tmp_path, ASK)
    try:
        wait_for_text(tmp_path, "A beginning")
    finally:
        program.kill()
        program.wait(20)
    opened = open_store(tmp_path / "chats.sqlite3")
    (chat,) = opened.store.conversations()
    question, answer = opened.store.messages(chat.conversation.id)
    opened.store.close()
    assert question.content == "Hello"
    assert (answer.content, answer.state) == ("A beginning", MessageState.INTERRUPTED)
    assert [row.id for row in opened.interrupted] == [answer.id]
    assert (
        RunMarker(tmp_path / "logs", tmp_path / "logs" / "crash.log").begin() is not None
    )  # it will be told


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT between processes")
def test_ctrl_c_stops_saves_and_ends_the_program(tmp_path: Path) -> None:
    program = start(tmp_path, ASK)
    try:
        wait_for_text(tmp_path, "A beginning")
        program.send_signal(signal.SIGINT)
        assert program.wait(20) == 0
    finally:
        program.kill()
    opened = open_store(tmp_path / "chats.sqlite3")
    (chat,) = opened.store.conversations()
    answer = opened.store.messages(chat.conversation.id)[-1]
    opened.store.close()
    assert (answer.content, answer.state) == ("A beginning", MessageState.STOPPED)
    assert "Fiddler Chat ends" in (tmp_path / "logs" / "fiddler-chat.log").read_text()


def test_a_second_start_has_the_first_import_its_files_and_ends(tmp_path: Path) -> None:
    first = start(tmp_path, ASK)
    try:
        wait_for_text(tmp_path, "A beginning")  # it runs, and is at work
        second = start(tmp_path, ASK, ROOT / "tests/app/importing/released/v1.json")
        assert second.wait(20) == 0
        wait_for_text(tmp_path, "When was Rome founded?")
    finally:
        first.kill()
        first.wait(20)


RESTART = """
    from pathlib import Path
    from PySide6.QtCore import QTimer
    from app.fault_dialog import FaultDialog
    once = Path(sys.argv[1], "once")
    def press_restart():
        dialog = window.findChild(FaultDialog)
        dialog.restart_requested.emit() if dialog else QTimer.singleShot(20, press_restart)
    if once.exists():
        QTimer.singleShot(0, window.close)
    else:
        once.touch()
        QTimer.singleShot(0, press_restart)
        raise RuntimeError("a fault")
"""


def test_after_a_fault_the_program_can_be_started_anew(tmp_path: Path) -> None:
    first = start(tmp_path, RESTART)
    try:
        assert first.wait(20) == 0
        log = tmp_path / "logs" / "fiddler-chat.log"
        until = time.monotonic() + 20
        while log.read_text().count("Fiddler Chat ends") < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert log.read_text().count("Fiddler Chat ends") == 2  # the second one after it had a look
        assert not (tmp_path / "logs" / "running.json").exists()
    finally:
        first.kill()


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("fiddler-chat ")


@pytest.fixture
def reporter(qtbot: QtBot) -> Iterator[FaultReporter]:
    window = QWidget()
    qtbot.addWidget(window)
    made = FaultReporter(window)
    hooks = sys.excepthook, threading.excepthook
    made.install()
    yield made
    sys.excepthook, threading.excepthook = hooks


def dialogs(reporter: FaultReporter) -> list[FaultDialog]:
    return reporter._window.findChildren(FaultDialog)


def test_a_fault_is_shown_with_details_to_copy_and_the_program_goes_on(
    qtbot: QtBot, reporter: FaultReporter, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        sys.excepthook(ValueError, ValueError(f"fault {number}"), None)
    qtbot.waitUntil(lambda: len(dialogs(reporter)) == 1)
    assert "Something unexpected happened" in dialogs(reporter)[0].accessibleName()
    assert caplog.text.count("uncaught exception") == 3
    copy = next(b for b in dialogs(reporter)[0].findChildren(QPushButton) if b.text() == "&Copy details")
    copy.click()
    assert "ValueError" in QGuiApplication.clipboard().text()
    assert "fault 0" not in QGuiApplication.clipboard().text()  # it might be what somebody wrote
    dialogs(reporter)[0].reject()
    qtbot.waitUntil(lambda: not dialogs(reporter))


def test_a_fault_in_another_thread_is_shown_too(qtbot: QtBot, reporter: FaultReporter) -> None:
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(dialogs(reporter)) == 1)
    dialogs(reporter)[0].reject()


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    formatters = [handler.formatter for handler in before]
    yield root
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()
    for handler, formatter in zip(before, formatters, strict=True):
        handler.setFormatter(formatter)
    root.setLevel(level)


def test_the_log_goes_to_the_data_folder(root_logger: logging.Logger) -> None:
    start_logging()
    logging.getLogger("app.test").info("a line")
    assert "a line" in log_path().read_text(encoding="utf-8")


def test_without_a_place_for_the_log_the_program_starts(
    root_logger: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(blocked / "data"))
    start_logging()
    logging.getLogger("app.test").warning("goes on")
    assert not any(
        isinstance(handler, logging.FileHandler) and "fiddler" in handler.baseFilename
        for handler in root_logger.handlers
    )


def test_an_input_method_without_a_plugin_is_reached_through_ibus() -> None:
    for chosen, used in (("fcitx", "ibus"), ("fcitx5", "ibus"), ("ibus", "ibus"), ("", "")):
        environment = {"QT_IM_MODULE": chosen}
        choose_input_method(environment)
        assert environment["QT_IM_MODULE"] == used


def test_a_fault_before_there_is_a_window_is_told(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[list[str]] = []

    def look() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, FaultDialog)
        seen.append([button.text() for button in dialog.findChildren(QPushButton)])
        dialog.reject()

    QTimer.singleShot(0, look)
    tell_of_failed_start(ValueError, ValueError("amiss"), None)
    assert "&Quit" in seen[0]
    assert "the start failed" in caplog.text
