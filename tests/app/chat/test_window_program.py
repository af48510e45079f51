"""The window as a program: models, closing and coming back, files, the first start."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from app.composer.composer import ComposerState
from app.dialogs import MessageDialog
from app.export.dialog import ExportDialog
from app.paths import database_path
from app.settings import SettingsStore, registry
from app.storage import MessageState, open_store
from app.storage.thread import StorageThread
from app.theme import theme
from app.window import MainWindow
from app.worker import EngineWorker
from engine.errors import ShortageError
from engine.options import LoadOptions
from tests.app.chat.hands import answer, ask, listed, press, write
from tests.app.fakes import ScriptedFactory, make_status

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark


def test_loading_shows_progress_and_can_be_cancelled(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    factory.load_gate = threading.Event()
    window.model.load_saved()
    strip = window.page.strip
    qtbot.waitUntil(lambda: strip.progress.what.text() == "Reading the experts", timeout=5000)
    assert strip.isVisible()
    assert window.page.composer.state is ComposerState.UNAVAILABLE
    write(qtbot, window, "meanwhile")
    press(qtbot, window)
    assert window.page.composer.text == "meanwhile"
    qtbot.mouseClick(strip.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    assert strip.choose.isVisible()
    with qtbot.waitSignal(window.setup_requested):
        qtbot.mouseClick(strip.choose, Qt.MouseButton.LeftButton)


def test_a_model_that_does_not_fit_can_be_loaded_anyway(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    factory.load_error = ShortageError("It does not fit.", why="3 GiB missing.", action="Close programs.")
    window.model.load_saved()
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    strip = window.page.strip
    assert strip.problem.why.text == "3 GiB missing."
    factory.load_error = None
    qtbot.mouseClick(strip.anyway, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=5000)
    assert factory.options[-1].force
    assert strip.isHidden()


def test_the_next_model_is_told_of_when_the_one_before_was_called_off(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    factory.load_gate = threading.Event()
    window.model.load_saved()
    told: list[bool] = []
    worker.cancelled.connect(lambda _: told.append(window.page.strip.loading))
    worker.cancel()
    worker.load(Path("/models/other"), LoadOptions())
    qtbot.waitUntil(lambda: bool(told), timeout=5000)
    assert told == [True]
    factory.load_gate.set()
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=5000)
    assert window.page.strip.isHidden()


def test_a_load_that_never_began_leaves_the_model_that_is_there(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    factory.gate = threading.Event()
    write(qtbot, window, "Hello")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    window.model.load_saved()  # after the answer
    worker.cancel()
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    assert window.session.model is not None
    assert window.page.strip.isHidden()


def test_stopping_an_answer_leaves_a_model_that_waits_to_be_loaded(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    factory.gate = threading.Event()
    write(qtbot, window, "Hello")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    before = factory.engine
    window.model.load_saved()  # after the answer
    window.session.stop()
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    assert answer(window).row.state is MessageState.STOPPED
    assert factory.engine is not before
    assert window.session.model is not None
    assert window.page.strip.isHidden()


def test_the_figures_of_an_answer_go_with_its_chat(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window)
    assert "tokens/s" in window.status_line.speed.text()
    window.session.new_chat()
    assert window.status_line.speed.text() == ""


def test_closing_while_an_answer_is_written_saves_it(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    write(qtbot, window, "Hello")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    write(qtbot, window, "next thought")
    assert window.close()
    opened = open_store(database_path())
    chat = opened.store.conversations()[0].conversation
    row = opened.store.messages(chat.id)[-1]
    draft = opened.store.draft(chat.id)
    opened.store.close()
    assert (row.state, row.content) == (MessageState.STOPPED, "Paris ")
    assert draft == "next thought"
    assert factory.engine.closed


def test_closing_while_a_title_is_typed_saves_it(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window)
    qtbot.waitUntil(lambda: listed(window) == ["Hello"], timeout=5000)
    window.menus.actions["rename"].trigger()
    window.menus.actions["rename"].trigger()  # it is being edited already
    editor = window.sidebar.list.findChild(QLineEdit)
    assert editor is not None
    qtbot.keyClicks(editor, "A greeting")
    assert window.close()
    opened = open_store(database_path())
    title = opened.store.conversations()[0].conversation.title
    opened.store.close()
    assert title == "A greeting"


def test_what_fails_after_the_window_was_closed_opens_nothing(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    assert window.close()
    with qtbot.waitSignal(storage.failed):
        window.chats.refresh()  # as what was under way may ask for
    assert window.findChildren(MessageDialog) == []


def test_the_window_comes_back_as_it_was(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, worker: EngineWorker
) -> None:
    window.splitter.setSizes([200, 700, 300])
    window.program.toggle_panel()
    sizes = window.splitter.sizes()
    window.close()
    again = MainWindow(StorageThread(database_path()), worker, settings)
    qtbot.addWidget(again)
    again.show()
    assert again.panel.isHidden()
    assert again.splitter.sizes()[0] == sizes[0]
    again.program.toggle_panel()
    assert again.panel.isVisible()


def test_the_theme_of_the_settings_is_shown_at_once(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    ask(qtbot, window)
    settings.set(registry.THEME, "dark")
    assert theme().dark
    assert QApplication.palette().window().color() == theme().colors.base
    settings.set(registry.THEME, "light")


def test_a_chat_is_exported_and_the_window_says_where(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, tmp_path: Path
) -> None:
    settings.set(registry.EXPORT_FOLDER, str(tmp_path))
    ask(qtbot, window, "Export me")
    window.page.export_button.click()
    dialog = window.findChild(ExportDialog)
    assert dialog is not None
    qtbot.waitUntil(lambda: dialog.name.text() == "Export me.md" and dialog.export.isEnabled(), timeout=5000)
    dialog.export.click()
    path = tmp_path / "Export me.md"
    qtbot.waitUntil(lambda: str(path) in window.page.notice.text, timeout=5000)
    assert "Paris is the capital." in path.read_text(encoding="utf-8")


def test_an_exported_chat_that_is_dropped_on_the_window_is_imported(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, tmp_path: Path
) -> None:
    settings.update({"export.folder": str(tmp_path), "export.format": "json"})
    ask(qtbot, window, "Take me along")
    window.menus.actions["export"].trigger()
    export = window.findChild(ExportDialog)
    assert export is not None
    path = tmp_path / "Take me along.json"
    qtbot.waitUntil(lambda: export.name.text() == path.name and export.export.isEnabled(), timeout=5000)
    export.export.click()
    qtbot.waitUntil(lambda: str(path) in window.page.notice.text, timeout=5000)
    shown = window.session.conversation
    assert shown is not None
    window.chats.delete((shown.id,))
    qtbot.waitUntil(lambda: listed(window) == [], timeout=5000)
    assert window.acceptDrops()
    window.files_dropped.emit([path])
    qtbot.waitUntil(lambda: listed(window) == ["Take me along"], timeout=5000)
    assert window.page.notice.text == "Imported: 1 chat, 2 messages."
    qtbot.waitUntil(lambda: len(window.page.view.views) == 2, timeout=5000)
    assert answer(window).content() == "Paris is the capital."
    assert window.session.conversation is not None
    assert window.session.conversation.id != shown.id


def test_a_first_start_opens_the_wizard(qtbot: QtBot, storage: StorageThread, worker: EngineWorker) -> None:
    window = MainWindow(storage, worker, SettingsStore(None))
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.setup_requested):
        window.begin()
    assert worker.idle
    assert window.page.composer.state is ComposerState.UNAVAILABLE
    assert window.page.strip.choose.isVisibleTo(window)


def test_a_calibration_that_does_not_fit_any_more_is_told_until_it_does(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, worker: EngineWorker
) -> None:
    assert window.page.model_notice.text == ""
    factory.status = make_status(stale_calibration="The hardware has changed. Calibrate again.")
    window.model.load_saved()
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    notice = window.page.model_notice
    assert notice.text == "The hardware has changed. Calibrate again."
    with qtbot.waitSignal(window.calibration_requested):
        qtbot.mouseClick(notice.button, Qt.MouseButton.LeftButton)
    factory.status = make_status(calibrated=True)
    worker.calibrate()
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)
    assert notice.text == ""
