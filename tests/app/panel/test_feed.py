from __future__ import annotations

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.panel.feed import Feed, Which
from app.panel.history import ChatFigures
from tests.app.figures import stats_after
from tests.app.panel.rows import answer_row


@pytest.fixture
def owner(qtbot: QtBot) -> QObject:
    return QObject()


@pytest.fixture
def feed(owner: QObject) -> Feed:
    made = Feed(owner)
    made.watch(True)
    return made


def ids(feed: Feed) -> list[int]:
    return [answer.message_id for answer in feed.chat.answers]


def test_the_running_answer_then_the_last_one_is_shown(qtbot: QtBot, feed: Feed) -> None:
    assert feed.shown().which is Which.NONE
    feed.show_chat(1, [answer_row(1), answer_row(2)])
    qtbot.waitUntil(lambda: ids(feed) == [101, 102])
    assert (feed.shown().which, feed.shown().index) == (Which.LAST, 1)
    feed.show_running(stats_after(3))
    assert (feed.shown().which, feed.shown().index) == (Which.RUNNING, None)
    feed.end_answer(answer_row(3))
    assert (feed.shown().which, feed.shown().index) == (Which.LAST, 2)
    assert feed.running is None


def test_a_chosen_answer_stays_until_it_is_given_back_or_the_chat_changes(qtbot: QtBot, feed: Feed) -> None:
    feed.show_chat(1, [answer_row(1), answer_row(2)])
    qtbot.waitUntil(lambda: len(ids(feed)) == 2)
    feed.choose(0)
    feed.show_running(stats_after(3))
    assert (feed.shown().which, feed.shown().index) == (Which.CHOSEN, 0)
    feed.choose(None)
    assert feed.shown().which is Which.RUNNING
    feed.choose(1)
    feed.show_chat(2, [answer_row(5, chat=2)])
    feed.show_running(None)
    qtbot.waitUntil(lambda: ids(feed) == [105])
    assert feed.shown().which is Which.LAST


def test_answers_of_other_chats_do_not_count(qtbot: QtBot, feed: Feed) -> None:
    feed.show_chat(1, [answer_row(1)])
    qtbot.waitUntil(lambda: ids(feed) == [101])
    feed.show_running(stats_after(3))
    feed.end_answer(answer_row(2, chat=2))
    assert ids(feed) == [101]
    assert feed.running is None


def test_an_answer_that_ends_while_the_chat_is_read_is_not_lost(qtbot: QtBot, feed: Feed) -> None:
    feed.show_chat(1, [answer_row(1)])
    feed.end_answer(answer_row(2))
    qtbot.waitUntil(lambda: ids(feed) == [101, 102])


def test_an_answer_that_was_continued_is_there_once(qtbot: QtBot, feed: Feed) -> None:
    feed.show_chat(1, [answer_row(1), answer_row(2, tokens=20)])
    qtbot.waitUntil(lambda: ids(feed) == [101, 102])
    feed.end_answer(answer_row(2, tokens=50))
    qtbot.waitUntil(lambda: feed.chat.answers[-1].stats.generated_tokens == 50)
    assert ids(feed) == [101, 102]


def test_nothing_is_computed_while_nobody_watches(
    qtbot: QtBot, owner: QObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    compute = ChatFigures.with_rows

    def counted(self: ChatFigures, rows: tuple) -> ChatFigures:  # type: ignore[type-arg]
        computed.append(len(tuple(rows)))
        return compute(self, rows)

    monkeypatch.setattr(ChatFigures, "with_rows", counted)
    feed = Feed(owner)
    told: list[None] = []
    feed.changed.connect(lambda: told.append(None))
    feed.show_chat(1, [answer_row(1), answer_row(2)])
    for tokens in range(1, 50):
        feed.show_running(stats_after(tokens))
    feed.end_answer(answer_row(3))
    qtbot.wait(50)
    assert computed == []
    assert told == []
    feed.watch(True)
    qtbot.waitUntil(lambda: ids(feed) == [101, 102, 103])
    assert computed == [3]
