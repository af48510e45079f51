"""A chat's own parameters, several answers to a question, and what the model no longer sees."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.chat.again import params_again, plan_again, seed_of
from app.chat.boundary import boundary_of, left_out
from app.chat.session import ChatSession
from app.presets.parameters import Parameters
from app.presets.preset import ChatSetup
from app.storage import ChatStore, MessageState, StorageError
from app.storage.thread import StorageThread
from engine.events import Answer, FinishReason
from engine.params import OverflowPolicy
from tests.app.chat.test_session import ask, read, wait_free
from tests.app.fakes import ScriptedFactory

THREE = ChatSetup("", "", Parameters(temperature=1, answers=3))
SEARCH = ChatSetup("", "", Parameters(beams=4, answers=3))


def texts(qtbot: QtBot, storage: StorageThread, chat: int) -> list[tuple[str, bool, MessageState]]:
    rows = read(qtbot, storage, lambda store: store.messages(chat, all_versions=True))
    return [(row.content, row.active, row.state) for row in rows if row.role == "assistant"]


def test_a_chat_keeps_its_parameters(qtbot: QtBot, session: ChatSession, storage: StorageThread) -> None:
    setup = ChatSetup("precise", "Be brief.", Parameters(temperature=0.4))
    session.parameters.change(setup)
    assert session.parameters.label == "Precise, changed"
    chat = ask(qtbot, session)
    assert session.parameters.setup == setup
    session.new_chat()
    assert session.parameters.setup == ChatSetup("balanced")
    with qtbot.waitSignal(session.opened):
        session.open(chat)
    assert session.parameters.setup == setup
    assert read(qtbot, storage, ChatStore.conversation, chat).system_prompt == "Be brief."


def test_the_parameters_of_a_chat_that_is_not_begun_wait_for_it(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    first = ask(qtbot, session)
    session.new_chat()
    session.parameters.change(ChatSetup("", "A long prompt.", Parameters(max_tokens=9)))
    with qtbot.waitSignal(session.opened):
        session.open(first)
    assert session.system_prompt == ""
    session.send_waiting(None, "written there before")  # while another chat is shown
    wait_free(qtbot, session)
    assert factory.params[-1].max_tokens == 9
    assert factory.engine.conversations[-1][0].content == "A long prompt."
    session.new_chat()
    assert session.parameters.setup == ChatSetup("balanced")
    session.parameters.change(ChatSetup("", "Another.", Parameters()))
    with qtbot.waitSignal(session.opened):
        session.open(first)
    session.new_chat()
    assert session.system_prompt == "Another."


def test_changes_of_a_chat_are_saved_and_apply_at_once(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    chat = ask(qtbot, session)
    session.parameters.change(ChatSetup("code", "New.", Parameters(max_tokens=9)))
    ask(qtbot, session, "More?")  # the change is still on its way to the disk
    assert factory.params[-1].max_tokens == 9
    assert factory.engine.conversations[-1][0].content == "New."
    saved = read(qtbot, storage, ChatStore.conversation, chat)
    assert (saved.system_prompt, saved.parameters["preset"]) == ("New.", "code")
    assert session.conversation is not None
    assert session.conversation.parameters == saved.parameters


def test_a_deleted_preset_leaves_the_chat_its_values(qtbot: QtBot, session: ChatSession) -> None:
    presets = session.parameters.presets
    mine = presets.add("Mine", ChatSetup("", "", Parameters(top_k=7)))
    session.parameters.change(ChatSetup(mine.id, "", mine.parameters))
    assert session.parameters.label == "Mine"
    presets.delete(mine.id)
    assert session.parameters.label == "Own values"
    assert session.parameters.setup.parameters.top_k == 7


def test_a_chat_from_before_presets_follows_the_default(
    qtbot: QtBot, session: ChatSession, storage: StorageThread
) -> None:
    chat = read(qtbot, storage, lambda store: store.create_conversation("Old", "", "Old prompt."))
    with qtbot.waitSignal(session.opened):
        session.open(chat.id)
    presets = session.parameters.presets
    presets.set_default(presets.add("New", ChatSetup("", "x", Parameters(top_k=3))).id)
    assert session.parameters.setup.parameters.top_k == 3
    assert session.parameters.setup.system_prompt == "Old prompt."


def test_parameters_that_cannot_be_saved_are_told(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, session)

    def full(*_: object) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(ChatStore, "set_parameters", full)
    with qtbot.waitSignal(storage.failed):
        session.parameters.change(THREE)


def test_several_answers_become_versions(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    session.parameters.change(THREE)
    remaining: list[int] = []
    session.generation.remaining_changed.connect(lambda _, answers: remaining.append(answers))
    chat = ask(qtbot, session)
    assert texts(qtbot, storage, chat) == [
        (f"{number}: Paris is the capital.", number == 1, MessageState.COMPLETE) for number in (1, 2, 3)
    ]
    assert remaining == [2, 1, 0]
    answer = session.messages[-1]
    assert len(answer.versions) == 3
    rows = read(qtbot, storage, ChatStore.show_version, answer.versions[2])
    assert rows[-1].content == "3: Paris is the capital."
    assert rows[-1].stats["seed"] == 102  # each knows its own


def test_a_fixed_seed_is_another_for_each_answer(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    session.parameters.change(ChatSetup("", "", Parameters(temperature=1, answers=3, seed=2**63 - 2)))
    ask(qtbot, session)
    assert [params.sampling.seed for params in factory.params] == [2**63 - 2, 2**63 - 1, 0]


def test_several_answers_can_be_stopped_and_all_keep_their_text(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    session.parameters.change(THREE)
    session.send("Hello")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    session.stop()
    wait_free(qtbot, session)
    assert session.conversation is not None
    assert texts(qtbot, storage, session.conversation.id) == [
        (f"{number}: Paris ", number == 1, MessageState.STOPPED) for number in (1, 2, 3)
    ]


def test_versions_that_never_got_a_word_are_dropped(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.script = [StorageError("No."), "never"]
    factory.numbered = False
    session.parameters.change(THREE)
    chat = ask(qtbot, session)
    assert texts(qtbot, storage, chat) == [("", True, MessageState.ERROR)]
    qtbot.waitUntil(lambda: len(session.messages[-1].versions) < 2, timeout=5000)


def test_a_search_saves_its_other_answers_beside_the_best(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    factory.answers = tuple(
        Answer(text, score, 5, FinishReason.EOS)
        for text, score in (("Paris is the capital.", -0.1), ("Paris.", -0.2), ("It is Paris.", -0.3))
    )
    searched: list[tuple[int, ...]] = []
    session.generation.searching.connect(lambda *values: searched.append(values))
    session.parameters.change(SEARCH)
    chat = ask(qtbot, session)
    assert (factory.params[-1].beams, factory.params[-1].answers) == (4, 3)
    qtbot.waitUntil(lambda: len(session.messages[-1].versions) == 3, timeout=5000)
    assert [text for text, _, _ in texts(qtbot, storage, chat)] == [one.text for one in factory.answers]
    other = read(qtbot, storage, ChatStore.show_version, session.messages[-1].versions[1])[-1]
    assert "score -0.200, the first one's is -0.100" in other.note
    assert searched[-1][1:] == (4, 3)


def test_what_was_left_out_is_saved_with_the_answer(
    qtbot: QtBot, session: ChatSession, storage: StorageThread, factory: ScriptedFactory
) -> None:
    session.parameters.change(ChatSetup("", "", Parameters(overflow=OverflowPolicy.DROP_OLDEST)))
    ask(qtbot, session, "One?")
    ask(qtbot, session, "Two?")
    factory.dropped = 2
    changed: list[Any] = []
    session.message_changed.connect(changed.append)
    chat = ask(qtbot, session, "Three?")
    assert factory.params[-1].overflow is OverflowPolicy.DROP_OLDEST
    rows = read(qtbot, storage, ChatStore.messages, chat)
    assert rows[-1].seen_from == rows[2].id == session.messages[-1].seen_from == changed[0].seen_from
    assert boundary_of(rows) == rows[2].id
    assert left_out(rows, rows[-1]) == 2
    factory.dropped = 0
    ask(qtbot, session, "Four?")  # everything fits again, such as in a longer context
    assert boundary_of(session.messages) is None


def test_an_answer_is_written_again_with_its_own_seed_and_parameters(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    session.parameters.change(ChatSetup("", "", Parameters(temperature=0.5, max_tokens=50)))
    ask(qtbot, session)
    answer = session.messages[-1]
    assert answer.params is not None
    assert answer.params["sampling"]["seed"] is None
    assert seed_of(answer) == 7  # the one that was drawn
    session.parameters.change(ChatSetup("", "", Parameters(temperature=2, answers=3)))
    session.regenerate(answer.id, plan_again(answer, ""))
    wait_free(qtbot, session)
    assert factory.params[-1].sampling.temperature == 0.5
    assert factory.params[-1].sampling.seed == 7
    assert factory.params[-1].max_tokens == 50
    assert len(session.messages[-1].versions) == 2


def test_an_answer_whose_seed_was_lost_cannot_be_written_again(
    qtbot: QtBot, session: ChatSession, factory: ScriptedFactory
) -> None:
    session.parameters.change(ChatSetup("", "", Parameters(temperature=0.5)))
    ask(qtbot, session)
    answer = session.messages[-1]
    assert params_again(dataclasses.replace(answer, stats=None)) is None
    assert params_again(dataclasses.replace(answer, params={"beams": "many"})) is None
    assert plan_again(dataclasses.replace(answer, params=None), "") is None
