"""What is saved before the engine is asked: a question with an empty answer, or another answer. Qt-free.

Each function returns the operation for `StorageThread.run`; `model` is who is to answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from app.chat.plan import AnswerPlan
from app.chat.requests import title_from
from app.storage import ChatStore, Conversation, Exchange, StorageError
from app.storage.rows import JsonObject

Beginning = Callable[[ChatStore], tuple[Conversation, Exchange]]


def question(
    chat: Conversation | None,
    text: str,
    model: str,
    plan: AnswerPlan,
    parameters: JsonObject,
    *,
    waited: bool = False,
) -> Beginning:
    """The user's next message; without a chat, the first of a new one, which keeps these `parameters`.

    `waited`: the disk has it as the one that waits for its turn.
    """

    def save(store: ChatStore) -> tuple[Conversation, Exchange]:
        into = chat or store.create_conversation(title_from(text), model, plan.system_prompt, parameters)
        try:
            exchange = store.begin_exchange(into.id, text, model=model, params=plan.shown, others=plan.others)
        except StorageError:
            if chat is None:
                with suppress(StorageError):  # the first error is the one to tell about
                    store.delete(into.id)
            raise
        if waited:  # where the program ends before this, it also comes back into the composer
            store.save_next(None if chat is None else chat.id, "")
        return into, exchange

    return save


def other_answer(chat: Conversation, message_id: int | None, model: str, plan: AnswerPlan) -> Beginning:
    """Another version of an answer (None: of the last)."""

    def save(store: ChatStore) -> tuple[Conversation, Exchange]:
        params, others = plan.shown, plan.others
        if message_id is None:
            return chat, store.begin_regeneration(chat.id, model=model, params=params, others=others)
        return chat, store.begin_other_answer(message_id, model=model, params=params, others=others)

    return save


def edited_question(
    chat: Conversation, message_id: int, text: str, model: str, plan: AnswerPlan
) -> Beginning:
    """Another version of a question, with an empty answer."""

    def save(store: ChatStore) -> tuple[Conversation, Exchange]:
        exchange = store.begin_edited(message_id, text, model=model, params=plan.shown, others=plan.others)
        return chat, exchange

    return save


def continuation(chat: Conversation, message_id: int) -> Beginning:
    """The last answer, unfinished again."""
    return lambda store: (chat, store.begin_continuation(message_id))
