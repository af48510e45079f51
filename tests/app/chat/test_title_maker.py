from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.chat.session import ChatSession
from app.chat.title_maker import TitleMaker
from app.chat.titles import PARAMS, REQUEST
from app.settings import SettingsStore, registry
from app.storage import Conversation
from app.storage.thread import StorageThread
from app.window import MainWindow
from app.worker import EngineWorker
from engine.errors import PromptTooLongError
from engine.events import FinishReason
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

QUESTION = "What is the capital of France?"
EVERYTHING_DONE = 5000


@pytest.fixture
def maker(
    session: ChatSession,
    storage: StorageThread,
    loaded_worker: EngineWorker,
    settings: SettingsStore,
    factory: ScriptedFactory,
) -> Iterator[TitleMaker]:
    settings.set(registry.SUGGEST_TITLES, True)
    factory.titles = ["Title: ", "“Capitals", " of Europe”"]
    made = TitleMaker(session, storage, loaded_worker, settings)
    yield made
    made.deleteLater()


def title(session: ChatSession) -> str:
    assert session.conversation is not None
    return session.conversation.title


def ask(qtbot: QtBot, session: ChatSession, text: str = QUESTION) -> None:
    session.send(text)
    qtbot.waitUntil(lambda: not session.busy, timeout=EVERYTHING_DONE)


def wait_for_store(qtbot: QtBot, storage: StorageThread) -> None:
    done: list[int] = []
    storage.run(lambda _store: 1).then(done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=EVERYTHING_DONE)


def settle(qtbot: QtBot, storage: StorageThread, worker: EngineWorker) -> None:
    """Until everything that was asked of the store and of the engine is done."""
    for _ in range(3):  # an answer of one may be a question to the other
        wait_for_store(qtbot, storage)
        qtbot.waitUntil(lambda: worker.idle and not worker._asides, timeout=EVERYTHING_DONE)


def test_the_model_names_a_chat_after_the_first_answer(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
) -> None:
    idle: list[bool] = []
    renamed: list[Conversation] = []
    maker.renamed.connect(renamed.append)
    worker.idle_changed.connect(idle.append)
    ask(qtbot, session)
    qtbot.waitUntil(lambda: bool(renamed), timeout=EVERYTHING_DONE)
    assert [chat.title for chat in renamed] == ["Capitals of Europe"] == [title(session)]
    question, answer, asked = factory.engine.conversations[-1]
    assert (question.content, answer.content, asked.content) == (QUESTION, "Paris is the capital.", REQUEST)
    assert factory.params[-1] == PARAMS
    assert idle == [False, True]  # of the answer alone: nobody else has to wait for a title
    ask(qtbot, session, "And of Spain?")
    settle(qtbot, storage, worker)
    assert len(factory.engine.conversations) == 3  # a chat that has a name is not named again


def test_a_message_of_the_user_ends_it_at_once(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
) -> None:
    factory.title_gate = threading.Event()  # never opened: only being cancelled ends it
    ask(qtbot, session)
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 2, timeout=EVERYTHING_DONE)
    ask(qtbot, session, "And of Spain?")
    assert session.messages[-1].content == "Paris is the capital."
    assert title(session) == QUESTION
    factory.title_gate.set()
    settle(qtbot, storage, worker)  # it is tried again after the second answer
    assert title(session) == "Capitals of Europe"
    assert [row.content for row in session.messages if row.role == "user"] == [QUESTION, "And of Spain?"]


def test_a_name_that_the_user_gives_meanwhile_stays(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
) -> None:
    factory.title_gate = threading.Event()
    ask(qtbot, session)
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 2, timeout=EVERYTHING_DONE)
    assert session.conversation is not None
    session.rename(session.conversation.id, "Mine")
    qtbot.waitUntil(lambda: title(session) == "Mine", timeout=EVERYTHING_DONE)
    factory.title_gate.set()
    settle(qtbot, storage, worker)
    assert title(session) == "Mine"


@pytest.mark.parametrize(
    "said", [["“”"], [], ["so many words " * 9], ["Unheard-of matters"], [PromptTooLongError("Too long.")]]
)
def test_what_is_no_title_changes_nothing_and_says_nothing(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
    said: list[str | BaseException],
) -> None:
    factory.titles = said
    failures: list[object] = []
    worker.failed.connect(lambda *failure: failures.append(failure))
    ask(qtbot, session)
    settle(qtbot, storage, worker)
    assert len(factory.engine.conversations) == 2
    assert title(session) == QUESTION
    assert not failures


def test_a_title_that_was_cut_off_is_none(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
) -> None:
    factory.reason = FinishReason.LENGTH
    ask(qtbot, session)
    settle(qtbot, storage, worker)
    assert title(session) == QUESTION


def test_it_can_be_switched_off(
    qtbot: QtBot,
    session: ChatSession,
    maker: TitleMaker,
    factory: ScriptedFactory,
    storage: StorageThread,
    worker: EngineWorker,
    settings: SettingsStore,
) -> None:
    settings.set(registry.SUGGEST_TITLES, False)
    ask(qtbot, session)
    settle(qtbot, storage, worker)
    assert len(factory.engine.conversations) == 1
    assert title(session) == QUESTION


def test_the_window_shows_the_name(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore, factory: ScriptedFactory
) -> None:
    settings.set(registry.SUGGEST_TITLES, True)
    factory.titles = ["Capitals of Europe"]
    window.session.send(QUESTION)

    def shown() -> bool:
        model = window.sidebar.model
        names = [model.data(model.index(row)) for row in range(model.rowCount())]
        return names == [window.page.title.text()] == ["Capitals of Europe"]

    qtbot.waitUntil(shown, timeout=EVERYTHING_DONE)
    assert window.windowTitle().startswith("Capitals of Europe")
