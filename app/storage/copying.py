"""Copy a whole chat inside the database. Called inside a transaction; raises `sqlite3.Error`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

# An answer that another chat is still writing is a beginning here, and will stay one.
_STATE = "CASE state WHEN 'streaming' THEN 'interrupted' ELSE state END"


def copy_conversation(db: sqlite3.Connection, conversation_id: int, title: str, now: int) -> int:
    """Copy a chat with all versions of its messages and their times; the id of the copy.

    It is neither pinned nor archived, and what is typed but not sent stays where it is.
    """
    cursor = db.execute(
        "INSERT INTO conversation (title, model, system_prompt, parameters, created, updated, activity)"
        " SELECT ?, model, system_prompt, parameters, ?, ?, activity FROM conversation WHERE id = ?",
        (title, now, now, conversation_id),
    )
    copy = cursor.lastrowid or 0
    new_ids: dict[int, int] = {}
    query = "SELECT id, parent, seen_from FROM message WHERE conversation_id = ? ORDER BY id"
    for message_id, parent, seen_from in db.execute(
        query, (conversation_id,)
    ).fetchall():  # parents come first
        cursor = db.execute(
            "INSERT INTO message (conversation_id, parent, active, role, content, state, created, finished,"
            " model, reason, note, params, stats, seen_from)"
            f" SELECT ?, ?, active, role, content, {_STATE}, created, finished, model, reason, note, params,"
            " stats, ? FROM message WHERE id = ?",
            (copy, new_ids.get(parent), _counterpart(seen_from, new_ids), message_id),
        )
        new_ids[message_id] = cursor.lastrowid or 0
    return copy


def _counterpart(seen_from: int | None, new_ids: Mapping[int, int]) -> int | None:
    """The copy of the message that an answer was written from, or of the next if that was deleted."""
    if seen_from is None:
        return None
    return next((new for old, new in new_ids.items() if old >= seen_from), None)
