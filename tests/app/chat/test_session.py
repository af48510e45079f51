from __future__ import annotations

import threading
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.chat.notices import Action, notice_for
from app.chat.session import ChatSession
from app.paths import database_path
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup
from app.storage import ChatStore, MessageState, StorageError, open_store
from app.storage.thread import StorageThread
from engine.errors import PromptTooLongError
from engine.events import FinishReason
from engine.params import Message, OverflowPolicy
from tests.app.chat.hands import read
from tests.app.fakes import ScriptedFactory, shortage


def wait_free(qtbot: QtBot, session: ChatSession) -> None:
    qtbot.waitUntil(lambda: not session.busy, timeout=5000)


def ask(qtbot: QtBot, session: ChatSession, text: str = "What is the capital of France?") -> int:
    """Send, wait for the end, and return the conversation's id."""
    session.send(text)
    wait_free(qtbot, session)
    assert session.conversation is not None
    return session.conversation.id


def test_question_and_answer_are_saved_with_figures(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    chat = ask(qtbot, session)
    question, answer = read(qtbot, storage, ChatStore.messages, chat)
    assert (question.role, question.content) == ("user", "What is the capital of France?")
    assert (answer.role, answer.content) == ("assistant", "Paris is the capital.")
    assert answer.state is MessageState.COMPLETE
    assert answer.reason == FinishReason.EOS
    assert answer.stats["generated_tokens"] == 3
    assert answer.params["sampling"]["temperature"] == 0
    assert factory.engine.conversations == [[Message("user", "What is the capital of France?")]]
    assert [row.content for row in session.messages] == [question.content, answer.content]


def test_the_question_is_on_the_disk_before_the_engine_hears_of_it(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    generate = factory.engine.generate

    def look_first(*arguments: Any) -> Any:
        opened = open_store(database_path())
        chats = opened.store.conversations()
        rows = opened.store.messages(chats[0].conversation.id)
        seen.append([f"{row.role} {row.state} {row.content}" for row in rows])
        opened.store.close()
        return generate(*arguments)

    monkeypatch.setattr(factory.engine, "generate", look_first)
    ask(qtbot, session, "Hello")
    assert seen == [["user complete Hello", "assistant streaming "]]


def test_the_answer_so_far_is_saved_while_it_is_written(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    session.send("Hello")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    assert session.conversation is not None
    chat = session.conversation.id

    def saved() -> bool:
        row = read(qtbot, storage, ChatStore.messages, chat)[-1]
        return bool(row.content == "Paris " and row.state is MessageState.STREAMING)

    qtbot.waitUntil(saved, timeout=5000)
    factory.gate.set()


def test_stopping_keeps_what_is_there(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    session.send("Hello")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    session.stop()
    wait_free(qtbot, session)
    assert session.messages[-1].state is MessageState.STOPPED
    assert session.messages[-1].content == "Paris "  # within one token: the second never came
    assert session.conversation is not None
    row = read(qtbot, storage, ChatStore.messages, session.conversation.id)[-1]
    assert (row.state, row.content) == (MessageState.STOPPED, "Paris ")


def test_stopping_before_the_question_is_saved_stops_the_answer(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()  # without a stop the answer would never end
    session.send("Hello")
    session.stop()
    wait_free(qtbot, session)
    assert session.messages[0].content == "Hello"
    assert session.messages[-1].state is MessageState.STOPPED
    factory.gate = None
    ask(qtbot, session, "Once more")
    assert session.messages[-1].state is MessageState.COMPLETE


def test_the_next_question_carries_the_conversation_and_the_system_prompt(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    presets = session.parameters.presets
    presets.set_default(presets.add("Brief", ChatSetup("", "Be brief.")).id)
    ask(qtbot, session, "First?")
    presets.set_default("balanced")  # the chat keeps what it was begun with
    ask(qtbot, session, "Second?")
    assert factory.engine.conversations[-1] == [
        Message("system", "Be brief."),
        Message("user", "First?"),
        Message("assistant", "Paris is the capital."),
        Message("user", "Second?"),
    ]


def test_the_chats_parameters_reach_the_engine(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    session.parameters.change(ChatSetup("", "", Parameters(temperature=0.3, seed=11)))
    ask(qtbot, session)
    assert factory.params[-1].sampling.temperature == 0.3
    assert factory.params[-1].sampling.seed == 11
    assert factory.params[-1].stop_loops  # the model's own


def test_an_error_is_kept_with_the_message_and_can_be_tried_again(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.script = ["Half", shortage()]
    chat = ask(qtbot, session)
    row = read(qtbot, storage, ChatStore.messages, chat)[-1]
    assert (row.state, row.content) == (MessageState.ERROR, "Half")
    assert "3.2 GB" in row.note
    factory.script = ["Whole"]
    session.regenerate()
    wait_free(qtbot, session)
    assert [row.content for row in session.messages] == ["What is the capital of France?", "Whole"]


def test_a_prompt_that_is_too_long_offers_to_let_messages_give_way(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    """Trying again, which other errors offer, would fail again."""
    factory.script = [PromptTooLongError("Too long.", action="Start a new chat.")]
    row = read(qtbot, storage, ChatStore.messages, ask(qtbot, session))[-1]
    assert row.state is MessageState.ERROR
    notice = notice_for(row)
    assert notice is not None
    assert notice.text.startswith("Too long. Start a new chat.")
    assert notice.action is Action.PARAMETERS
    session.parameters.change(ChatSetup("", "", Parameters(overflow=OverflowPolicy.KEEP_LATEST)))
    session.regenerate()
    wait_free(qtbot, session)
    notice = notice_for(session.messages[-1])  # they do already, and it is too long all the same
    assert notice is not None
    assert notice.action is Action.NEW_CHAT


def test_regenerating_replaces_the_answer_and_keeps_the_old_one(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    chat = ask(qtbot, session)
    factory.script = ["Another."]
    removed: list[int] = []
    session.messages_changed.connect(lambda rows: removed.append(len(rows)))
    session.regenerate()
    wait_free(qtbot, session)
    assert removed == [1]
    assert [row.content for row in session.messages][1:] == ["Another."]
    assert factory.engine.conversations[-1] == [Message("user", "What is the capital of France?")]
    opened = read(qtbot, storage, lambda store: store.messages(chat, all_versions=True))
    assert [row.content for row in opened][1:] == ["Paris is the capital.", "Another."]


def test_another_chat_can_be_read_while_an_answer_is_written(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    first = ask(qtbot, session, "First")
    session.new_chat()
    factory.gate = threading.Event()
    with qtbot.waitSignal(session.text_added):
        session.send("Second")
    with qtbot.waitSignal(session.opened) as opened:
        session.open(first)
    assert opened.args is not None
    assert [row.content for row in opened.args[1]] == ["First", "Paris is the capital."]
    second = session.answering_id
    assert second not in (None, first)
    with qtbot.waitSignal(session.opened) as opened:
        session.open(second)
    assert opened.args is not None
    assert opened.args[1][-1].content == "Paris "  # what came meanwhile is there
    assert opened.args[1][-1].state is MessageState.STREAMING
    factory.gate.set()
    wait_free(qtbot, session)
    assert session.messages[-1].content == "Paris is the capital."


def test_a_chat_that_cannot_be_opened_leaves_the_one_that_is_shown(
    qtbot: QtBot, session: ChatSession
) -> None:
    chat = ask(qtbot, session)
    with qtbot.waitSignal(session.failed):
        session.open(chat + 1)
    with qtbot.waitSignal(session.message_added):
        session.send("And of Italy?")
    wait_free(qtbot, session)
    assert len(session.messages) == 4


def test_an_answer_that_ends_while_its_chat_is_read_is_shown_as_it_ended(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    with qtbot.waitSignal(session.text_added):
        session.send("Question")
    chat = session.answering_id
    assert chat is not None
    session.new_chat()
    disk = threading.Event()
    storage.run(lambda _store: disk.wait(5))
    session.open(chat)
    factory.gate.set()
    wait_free(qtbot, session)
    with qtbot.waitSignal(session.opened) as opened:
        disk.set()
    assert opened.args is not None
    for row in (opened.args[1][-1], session.messages[-1]):
        assert (row.content, row.state) == ("Paris is the capital.", MessageState.COMPLETE)


def test_a_second_message_is_not_sent_while_an_answer_is_written(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    session.send("One")
    session.send("Two")
    session.regenerate()
    wait_free(qtbot, session)
    assert [row.content for row in session.messages if row.role == "user"] == ["One"]


def test_a_message_that_cannot_be_saved_is_given_back_and_not_answered(
    qtbot: QtBot,
    session: ChatSession,
    storage: StorageThread,
    factory: ScriptedFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("Your message could not be saved.", why="The disk is full.", action="Free space.")

    monkeypatch.setattr(ChatStore, "begin_exchange", full)
    refused: list[tuple[object, str]] = []
    session.refused.connect(lambda chat, text: refused.append((chat, text)))
    with qtbot.waitSignal(session.failed):
        session.send("precious words")
    assert refused == [(None, "precious words")]
    assert not session.busy
    assert read(qtbot, storage, ChatStore.conversations) == []  # no empty chat is left behind
    assert not factory.engine.conversations


def test_a_chat_is_named_after_its_first_message(qtbot: QtBot, session: ChatSession) -> None:
    ask(qtbot, session, "# Rome\nTell me about it")
    assert session.conversation is not None
    assert session.conversation.title == "Rome"


def test_ending_the_program_saves_the_answer_as_stopped(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    session.send("Hello")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    session.end_now()
    factory.gate.set()
    storage.close()
    opened = open_store(database_path())
    row = opened.store.messages(opened.store.conversations()[0].conversation.id)[-1]
    opened.store.close()
    assert (row.state, row.content) == (MessageState.STOPPED, "Paris ")
    assert opened.interrupted == ()


def test_an_answer_cut_off_by_a_crash_is_there_and_marked_at_the_next_start(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    crashed = open_store(database_path())  # another program, that will die without a word
    chat = crashed.store.create_conversation("Crashed")
    exchange = crashed.store.begin_exchange(chat.id, "Hello")
    crashed.store.update_partial(exchange.answer.id, "Half an ans")
    crashed.store._run.release()  # what the system does with a dead program's locks
    again = StorageThread(database_path())
    with qtbot.waitSignal(again.opened) as opened:
        again.start()
    assert opened.args is not None
    assert [row.content for row in opened.args[0].interrupted] == ["Half an ans"]
    with qtbot.waitSignal(session.opened) as shown:
        session.open(chat.id)
    assert shown.args is not None
    assert shown.args[1][-1].state is MessageState.INTERRUPTED
    again.close()
    crashed.store.close()
