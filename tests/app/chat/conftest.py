from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.chat.session import ChatSession
from app.chat.view import ConversationView
from app.paths import database_path
from app.presets.store import PresetStore
from app.settings import SettingsStore, registry
from app.storage import MessageState
from app.storage.thread import StorageThread
from app.theme import theme
from app.window import MainWindow
from app.worker import EngineWorker
from engine.options import LoadOptions
from tests.app.chat.conversation import LONG, row, settle

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    """Settings of a program whose wizard has been gone through, kept in memory."""
    store = SettingsStore(None)
    store.set(registry.WIZARD_COMPLETED, True)
    store.set(registry.SUGGEST_TITLES, False)  # the script of a test is an answer, not a title
    store.set(registry.MODEL_PATH, str(tmp_path))
    return store


@pytest.fixture
def storage(qtbot: QtBot) -> Iterator[StorageThread]:
    """The chats' store on a fresh file."""
    thread = StorageThread(database_path())
    yield thread
    thread.close()
    thread.deleteLater()


@pytest.fixture
def session(
    qtbot: QtBot, storage: StorageThread, loaded_worker: EngineWorker, settings: SettingsStore
) -> Iterator[ChatSession]:
    """A session with a model loaded (the fixture's worker had it loaded before the session listened)."""
    storage.start()
    made = ChatSession(storage, loaded_worker, PresetStore(None, settings))
    loaded_worker.load(Path("/models/starter"), LoadOptions())
    qtbot.waitUntil(lambda: made.model is not None, timeout=5000)
    yield made
    qtbot.waitUntil(lambda: not made.busy, timeout=5000)
    made.deleteLater()


@pytest.fixture
def window(
    qtbot: QtBot, storage: StorageThread, worker: EngineWorker, settings: SettingsStore
) -> Iterator[MainWindow]:
    """The main window with the scripted engine's model loaded."""
    theme().apply("light")
    made = MainWindow(storage, worker, settings)
    qtbot.addWidget(made)
    made.resize(1200, 800)
    made.show()
    made.begin()
    qtbot.waitUntil(lambda: made.session.model is not None and worker.idle, timeout=5000)
    yield made
    made.session.stop()
    qtbot.waitUntil(lambda: not made.session.busy, timeout=5000)
    storage.close()


@pytest.fixture
def view(qtbot: QtBot) -> ConversationView:
    theme().apply("light")
    made = ConversationView()
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    return made


@pytest.fixture
def streaming(view: ConversationView) -> ConversationView:
    """A view with a long answer that is being written."""
    view.show_messages([row(1, "user", "Tell me a lot")])
    view.add_message(row(2, "assistant", "", MessageState.STREAMING))
    view.append_text(2, LONG + "\n\n")
    settle()
    return view
