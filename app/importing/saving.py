"""Put chats that were read into the store, one after the other, and account for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.i18n import tr
from app.importing.words import Imported
from app.storage.errors import StorageError
from app.storage.incoming import IncomingChat
from app.storage.rows import Conversation
from engine.errors import Cancelled
from engine.progress import CancelToken, Progress, ProgressCallback


def save_chats(
    chats: Sequence[IncomingChat],
    begun: Imported,
    insert: Callable[[IncomingChat], Conversation],
    report: ProgressCallback,
    cancel: CancelToken,
) -> Imported:
    """Save `chats`, the latest last, so that it comes first in the list; `begun` with the outcome.

    Each chat is saved whole or not at all. Cancelled, or with the disk full, what was saved before stays,
    and the outcome says how many were not come to.
    """
    saved: list[int] = []
    messages = 0
    waiting = sorted(chats, key=lambda chat: chat.updated)
    for number, chat in enumerate(waiting):
        what = tr("Importing “{title}”", title=chat.title)
        report(Progress(what, number, len(waiting), tr("chats")))
        outcome = replace(begun, chats=tuple(saved), messages=messages, waiting=len(waiting) - number)
        try:
            cancel.raise_if_cancelled()
            saved.append(insert(chat).id)
        except Cancelled:
            return replace(outcome, cancelled=True)
        except StorageError as error:
            return replace(outcome, error=error)
        messages += len(chat.messages)
    return replace(begun, chats=tuple(saved), messages=messages)
