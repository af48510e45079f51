"""The SQL on the table `message`. Called inside a transaction of `ChatStore`; raises `sqlite3.Error`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from app.storage.rows import JsonObject, MessageRow, MessageState, dump_json, message_from
from engine.params import Role


def of_conversation(
    db: sqlite3.Connection, conversation_id: int, *, all_versions: bool = False
) -> list[MessageRow]:
    """A chat's messages, oldest first: the active ones, or all."""
    which = "" if all_versions else " AND active = 1"
    query = f"SELECT * FROM message WHERE conversation_id = ?{which} ORDER BY id"
    return [message_from(row) for row in db.execute(query, (conversation_id,))]


def append(
    db: sqlite3.Connection,
    conversation_id: int,
    role: Role,
    content: str,
    state: MessageState,
    *,
    created: int,
    model: str = "",
    params: JsonObject | None = None,
    run: str | None = None,
) -> MessageRow:
    """Add a message after the last active one. `created` in milliseconds; `run` writes a streaming row."""
    query = "SELECT max(id) FROM message WHERE conversation_id = ? AND active = 1"
    parent = db.execute(query, (conversation_id,)).fetchone()[0]
    cursor = db.execute(
        "INSERT INTO message (conversation_id, parent, role, content, state, created, model, params, run)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (conversation_id, parent, role, content, state, created, model, dump_json(params), run),
    )
    return message_from(db.execute("SELECT * FROM message WHERE id = ?", (cursor.lastrowid,)).fetchone())


# An answer counts as unfinished when another window has taken this program for dead and marked it, too.
_UNFINISHED = "state IN ('streaming', 'interrupted')"


def update_unfinished(db: sqlite3.Connection, message_id: int, content: str) -> bool:
    """Replace the text of an unfinished message; False if there is no such message."""
    update = f"UPDATE message SET content = ? WHERE id = ? AND {_UNFINISHED}"
    return db.execute(update, (content, message_id)).rowcount == 1


def finish(
    db: sqlite3.Connection,
    message_id: int,
    content: str,
    state: MessageState,
    *,
    finished: int,
    stats: JsonObject | None,
    reason: str,
    note: str,
) -> MessageRow | None:
    """End an unfinished message and return it; None if there is none."""
    changed = db.execute(
        "UPDATE message SET content = ?, state = ?, finished = ?, stats = ?, reason = ?, note = ?, run = NULL"
        f" WHERE id = ? AND {_UNFINISHED}",
        (content, state, finished, dump_json(stats), reason, note, message_id),
    ).rowcount
    if not changed:
        return None
    return message_from(db.execute("SELECT * FROM message WHERE id = ?", (message_id,)).fetchone())


def deactivate_after(db: sqlite3.Connection, conversation_id: int, message_id: int) -> None:
    """Take the messages after `message_id` off the chat; they stay in the file."""
    update = "UPDATE message SET active = 0 WHERE conversation_id = ? AND active = 1 AND id > ?"
    db.execute(update, (conversation_id, message_id))


def last_user_message(db: sqlite3.Connection, conversation_id: int) -> MessageRow | None:
    """The latest active message of the user."""
    query = (
        "SELECT * FROM message WHERE conversation_id = ? AND active = 1 AND role = 'user'"
        " ORDER BY id DESC LIMIT 1"
    )
    row = db.execute(query, (conversation_id,)).fetchone()
    return None if row is None else message_from(row)


def streaming_runs(db: sqlite3.Connection) -> list[str]:
    """The runs that have unfinished answers."""
    query = "SELECT DISTINCT ifnull(run, '') FROM message WHERE state = 'streaming'"
    return [row[0] for row in db.execute(query)]


def interrupt(db: sqlite3.Connection, runs: Iterable[str]) -> list[MessageRow]:
    """Mark the unfinished answers of `runs` as interrupted, and return them as they are now."""
    marked: list[MessageRow] = []
    for run in runs:
        condition = "state = 'streaming' AND ifnull(run, '') = ?"
        ids = [row[0] for row in db.execute(f"SELECT id FROM message WHERE {condition} ORDER BY id", (run,))]
        db.execute(f"UPDATE message SET state = 'interrupted', run = NULL WHERE {condition}", (run,))
        for message_id in ids:
            row = db.execute("SELECT * FROM message WHERE id = ?", (message_id,)).fetchone()
            marked.append(message_from(row))
    return marked
