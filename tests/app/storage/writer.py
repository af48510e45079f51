"""A program that chats until it is killed, and says what the store has acknowledged (for test_killed)."""

import itertools
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from app.storage import ChatStore, MessageState, open_store

Say = Callable[..., None]


def text_of(message_id: int) -> str:
    """The whole answer that message `message_id` would get: the reader can check any part of it."""
    return "".join(f"{message_id}:{number} " for number in range(200))


def chat(store: ChatStore, conversation: int, luck: random.Random, say: Say) -> None:
    exchange = store.begin_exchange(conversation, f"question {luck.random()}")
    question, answer = exchange.history[-1], exchange.answer.id
    say("question", question.id, question.content)
    whole = text_of(answer)
    length = 0
    for _ in range(luck.randrange(6)):
        length += luck.randrange(200)
        store.update_partial(answer, whole[:length])
        say("partial", answer, length)
    if luck.random() < 0.5:
        store.finish_message(answer, whole[:length], MessageState.COMPLETE)
        say("finished", answer, length)


def change(store: ChatStore, conversation: int, luck: random.Random, say: Say) -> None:
    """Do something with what is there: another version, a deleted turn, a step of the index."""
    rows = store.messages(conversation)
    row = luck.choice(rows)
    what = luck.randrange(5)
    if what == 0 and row.role == "user":
        edited = store.begin_edited(row.id, f"edited {luck.random()}").history[-1]
        say("question", edited.id, edited.content)
    elif what == 1 and row.role == "assistant":
        answer = store.begin_other_answer(row.id).answer.id
        store.finish_message(answer, text_of(answer))
        say("finished", answer, len(text_of(answer)))
    elif what == 2:
        shown = store.show_version(luck.choice(row.versions))
        say("shown", conversation, ",".join(str(shown.id) for shown in shown))
    elif what == 3:
        turn = [
            row.id,
            row.parent or 0,
            *(other.id for other in store.messages(conversation, all_versions=True)),
        ]
        say("deleting", conversation, ",".join(map(str, turn)))
        deleted, _ = store.delete_turn(row.id)
        store.restore_turn(deleted.id)
        say("restored", conversation, "again")
    else:
        store.index_some()


def main(database: Path, seed: int, mode: str, connection: Connection) -> None:
    """Send what was acknowledged through `connection`, line by line."""

    def say(*words: object) -> None:
        connection.send(" ".join(map(str, words)))

    store = open_store(database).store
    luck = random.Random(seed)
    if mode == "hold":  # one unfinished answer, then wait
        conversation = store.create_conversation("held").id
        say("holding", store.begin_exchange(conversation, "question").answer.id)
        connection.recv()
        return
    for number in itertools.count():
        conversation = store.create_conversation(f"chat {number}").id
        say("chat", conversation, f"chat {number}")
        for _ in range(3):
            chat(store, conversation, luck, say)
            change(store, conversation, luck, say)
