from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.desktop.long_work import (
    BACKUP,
    CALIBRATE,
    DOWNLOAD,
    EXPORT,
    GENERATE,
    IMPORT,
    LOAD,
    RESTORE,
    STARTER,
    Ended,
    is_worth_telling,
    keeps_awake,
    words,
)
from app.desktop.watch import SleepGuard, Teller, WorkWatch
from app.settings import SettingsStore, registry
from app.widgets.running import running_tasks
from app.widgets.task import Task
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.params import GenerationParams, Message
from engine.progress import CancelToken, ProgressCallback
from tests.app.fakes import ScriptedFactory


class Recorder:
    """Stands for the desktop: what it was asked for."""

    def __init__(self) -> None:
        self.held = 0
        self.texts: list[str] = []
        self.watched = False
        self.alerts = 0

    def hold(self, reason: str) -> None:
        assert reason
        self.held += 1

    def release(self) -> None:
        self.held -= 1

    def show(self, text: str) -> None:
        self.texts.append(text)

    def is_watched(self) -> bool:
        return self.watched

    def alert(self) -> None:
        self.alerts += 1


@pytest.fixture
def desk() -> Recorder:
    return Recorder()


@pytest.fixture
def settings() -> SettingsStore:
    return SettingsStore(None)


def ask(worker: EngineWorker) -> None:
    worker.generate(1, [Message("user", "Hello")], GenerationParams())


def test_only_long_work_that_nobody_watches_is_told_of() -> None:
    long, short = Ended(GENERATE, 60), Ended(GENERATE, 1)
    assert is_worth_telling(long, watched=False, wanted=True)
    assert not is_worth_telling(long, watched=True, wanted=True)
    assert not is_worth_telling(long, watched=False, wanted=False)
    assert not is_worth_telling(short, watched=False, wanted=True)
    assert not is_worth_telling(Ended("aside", 60), watched=False, wanted=True)


@pytest.mark.parametrize(
    "operation", [GENERATE, CALIBRATE, DOWNLOAD, STARTER, LOAD, EXPORT, IMPORT, BACKUP, RESTORE]
)
def test_every_long_work_has_words_for_both_ends_and_keeps_awake(operation: str) -> None:
    assert words(Ended(operation, 60)) != words(Ended(operation, 60, succeeded=False))
    assert keeps_awake(operation, wanted=True)
    assert not keeps_awake(operation, wanted=False)


def test_a_notice_comes_when_the_window_is_not_in_front(
    qtbot: QtBot, loaded_worker: EngineWorker, settings: SettingsStore, desk: Recorder
) -> None:
    watch = WorkWatch(loaded_worker, loaded_worker)
    teller = Teller(watch, desk, settings, desk)
    watch.ended.emit(Ended(GENERATE, 60))
    assert (desk.texts, desk.alerts) == (["The answer is complete."], 1)
    desk.watched = True
    watch.ended.emit(Ended(GENERATE, 60))
    assert desk.alerts == 1
    assert teller.parent() is watch


def test_what_ends_by_itself_is_heard_of_once(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    watch = WorkWatch(loaded_worker, loaded_worker)
    heard: list[tuple[str, bool]] = []
    watch.ended.connect(lambda ended: heard.append((ended.operation, ended.succeeded)))
    ask(loaded_worker)
    loaded_worker.calibrate()
    loaded_worker.download("owner/name", Path("/models/x"))
    loaded_worker.prepare_starter()
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert heard == [(GENERATE, True), (CALIBRATE, True), (DOWNLOAD, True), (STARTER, True)]
    heard.clear()
    factory.download_error = EngineError("The network is gone.")
    loaded_worker.download("owner/name", Path("/models/x"))
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert heard == [(DOWNLOAD, False)]


def test_what_the_user_stops_is_not_spoken_of(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    watch = WorkWatch(loaded_worker, loaded_worker)
    heard: list[Ended] = []
    watch.ended.connect(heard.append)
    factory.gate = threading.Event()
    ask(loaded_worker)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    loaded_worker.cancel()
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert heard == []


def test_the_computer_is_held_awake_while_it_works_and_no_longer(
    qtbot: QtBot,
    loaded_worker: EngineWorker,
    factory: ScriptedFactory,
    settings: SettingsStore,
    desk: Recorder,
) -> None:
    guard = SleepGuard(loaded_worker, desk, settings, loaded_worker, after_ms=0)
    factory.gate = threading.Event()
    ask(loaded_worker)
    qtbot.waitUntil(lambda: desk.held == 1, timeout=5000)
    settings.set(registry.KEEP_AWAKE, False)
    assert desk.held == 0
    settings.set(registry.KEEP_AWAKE, True)
    qtbot.waitUntil(lambda: desk.held == 1, timeout=5000)
    factory.gate.set()
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert desk.held == 0
    guard.end()
    assert desk.held == 0


def test_at_the_exit_the_computer_is_let_go(
    qtbot: QtBot,
    loaded_worker: EngineWorker,
    factory: ScriptedFactory,
    settings: SettingsStore,
    desk: Recorder,
) -> None:
    guard = SleepGuard(loaded_worker, desk, settings, loaded_worker, after_ms=0)
    factory.gate = threading.Event()
    ask(loaded_worker)
    qtbot.waitUntil(lambda: desk.held == 1, timeout=5000)
    guard.end()
    assert desk.held == 0
    factory.gate.set()


def test_short_work_asks_nothing_of_the_desktop(
    qtbot: QtBot, loaded_worker: EngineWorker, settings: SettingsStore, desk: Recorder
) -> None:
    guard = SleepGuard(loaded_worker, desk, settings, loaded_worker)
    ask(loaded_worker)
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert not guard._timer.isActive()
    assert desk.held == 0
    guard.end()


def test_an_export_is_told_of_and_keeps_awake_as_the_models_work_does(
    qtbot: QtBot, loaded_worker: EngineWorker, settings: SettingsStore, desk: Recorder
) -> None:
    guard = SleepGuard(loaded_worker, desk, settings, loaded_worker, after_ms=0)
    watch = WorkWatch(loaded_worker, loaded_worker)
    heard: list[tuple[str, bool]] = []
    watch.ended.connect(lambda ended: heard.append((ended.operation, ended.succeeded)))
    window = QWidget()
    qtbot.addWidget(window)
    gate = threading.Event()

    def work(_report: ProgressCallback, cancel: CancelToken) -> None:
        assert gate.wait(10)
        cancel.raise_if_cancelled()

    def fail(_report: ProgressCallback, _cancel: CancelToken) -> None:
        raise EngineError("The disk is full.")

    Task(window, "Exporting", work, lambda _: None, pytest.fail, kind=EXPORT)
    ask(loaded_worker)
    qtbot.waitUntil(lambda: desk.held == 1, timeout=5000)
    qtbot.waitUntil(lambda: loaded_worker.idle, timeout=5000)
    assert desk.held == 1  # the export goes on
    gate.set()
    qtbot.waitUntil(lambda: desk.held == 0, timeout=5000)
    Task(window, "Backing up", fail, pytest.fail, lambda _: None, kind=BACKUP)
    qtbot.waitUntil(lambda: (BACKUP, False) in heard, timeout=5000)
    gate.clear()
    stopped = Task(window, "Importing", work, pytest.fail, pytest.fail, kind=IMPORT)
    stopped.token.cancel()
    gate.set()
    qtbot.waitUntil(lambda: running_tasks().kinds == (), timeout=5000)
    assert heard == [(GENERATE, True), (EXPORT, True), (BACKUP, False)]
    guard.end()
