import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.dialogs import MessageDialog
from app.export import JSON, KINDS, PDF, ExportOptions
from app.export.job import ExportJob
from app.exporting import ExportFlow
from app.settings import SettingsStore, registry
from app.storage import ChatStore, Conversation
from app.storage.thread import StorageThread

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def storage(qtbot: QtBot, tmp_path: Path) -> Iterator[StorageThread]:
    thread = StorageThread(tmp_path / "chats.sqlite3")
    thread.start()
    yield thread
    thread.close()
    thread.deleteLater()


@pytest.fixture
def chat(qtbot: QtBot, storage: StorageThread) -> Conversation:
    """A chat with a question, and another chat."""
    found: list[Conversation] = []

    def fill(store: ChatStore) -> Conversation:
        store.create_conversation("Other")
        made = store.create_conversation("Rome")
        store.add_message(made.id, "user", "When was Rome founded?")
        return made

    storage.run(fill).then(found.append)
    qtbot.waitUntil(lambda: bool(found), timeout=5000)
    return found[0]


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    store = SettingsStore(None)
    store.set(registry.EXPORT_FOLDER, str(tmp_path / "out"))
    return store


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def flow(window: QWidget, storage: StorageThread, settings: SettingsStore) -> ExportFlow:
    return ExportFlow(window, storage, settings)


def test_from_the_dialog_to_the_file(
    qtbot: QtBot, flow: ExportFlow, chat: Conversation, settings: SettingsStore, tmp_path: Path
) -> None:
    dialog = flow.ask(chat)
    qtbot.waitUntil(lambda: dialog.all_chats.text() == "All chats (2)", timeout=5000)
    dialog.format.setCurrentIndex(KINDS.index(JSON))
    dialog.statistics.setChecked(False)
    qtbot.waitUntil(lambda: dialog.name.text() == "Rome.json" and dialog.export.isEnabled(), timeout=5000)
    with qtbot.waitSignal(flow.saved) as saved:
        dialog.export.click()
    assert str(tmp_path / "out" / "Rome.json") in saved.args[0]
    assert "When was Rome founded?" in (tmp_path / "out" / "Rome.json").read_text("utf-8")
    assert settings.get(registry.EXPORT_FORMAT) == "json"
    assert not settings.get(registry.EXPORT_STATISTICS)
    again = flow.ask(chat)
    assert again.format.currentText() == "JSON"
    assert not again.statistics.isChecked()
    again.reject()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_format_is_written_in_a_thread(
    qtbot: QtBot, flow: ExportFlow, chat: Conversation, tmp_path: Path, kind: object
) -> None:
    path = tmp_path / "rome"
    with qtbot.waitSignal(flow.saved):
        flow.export(ExportJob((chat.id,), path, kind, ExportOptions()))  # type: ignore[arg-type]
    assert path.read_bytes().startswith(b"%PDF") is (kind is PDF)


def test_an_export_that_fails_says_why(
    qtbot: QtBot, window: QWidget, flow: ExportFlow, chat: Conversation, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    flow.export(ExportJob((chat.id,), tmp_path / "file" / "x.md", KINDS[0], ExportOptions()))
    qtbot.waitUntil(lambda: window.findChild(MessageDialog) is not None, timeout=5000)
    dialog = window.findChild(MessageDialog)
    assert dialog is not None
    dialog.reject()


def test_an_export_ends_with_the_program(
    qtbot: QtBot,
    window: QWidget,
    flow: ExportFlow,
    storage: StorageThread,
    chat: Conversation,
    tmp_path: Path,
) -> None:
    gate = threading.Event()
    storage.run(lambda _: gate.wait(10))  # the chat cannot be read yet
    task = flow.export(ExportJob((chat.id,), tmp_path / "x.md", KINDS[0], ExportOptions()))
    with qtbot.waitSignal(task.destroyed):
        flow.stop()
    gate.set()
    assert not (tmp_path / "x.md").exists()
    assert window.findChild(MessageDialog) is None
