"""A program that chats until it is killed, and says what the store has acknowledged (for test_killed)."""

import itertools
import random
import sys
from pathlib import Path

from app.storage import ChatStore, MessageState, open_store


def text_of(message_id: int) -> str:
    """The whole answer that message `message_id` would get: the reader can check any part of it."""
    return "".join(f"{message_id}:{number} " for number in range(200))


def say(*words: object) -> None:
    print(*words, flush=True)


def chat(store: ChatStore, conversation: int, luck: random.Random) -> None:
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


def main() -> None:
    store = open_store(Path(sys.argv[1])).store
    luck = random.Random(int(sys.argv[2]))
    if sys.argv[3] == "hold":  # one unfinished answer, then wait
        conversation = store.create_conversation("held").id
        say("holding", store.begin_exchange(conversation, "question").answer.id)
        sys.stdin.read()
        return
    for number in itertools.count():
        conversation = store.create_conversation(f"chat {number}").id
        say("chat", conversation, f"chat {number}")
        for _ in range(3):
            chat(store, conversation, luck)


if __name__ == "__main__":
    main()
