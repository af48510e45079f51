"""The SQL on the table `message`. Called inside a transaction of `ChatStore`; raises `sqlite3.Error`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.storage.branches import Node, Tree
from app.storage.rows import JsonObject, MessageRow, MessageState, dump_json, message_from
from engine.params import Role
from engine.text import clean_text


def of_conversation(
    db: sqlite3.Connection, conversation_id: int, *, all_versions: bool = False
) -> list[MessageRow]:
    """A chat's messages, oldest first: the active ones, or all. Each knows its versions."""
    which = "" if all_versions else " AND active = 1"
    query = f"SELECT * FROM message WHERE conversation_id = ?{which} ORDER BY id"
    places = tree(db, conversation_id)
    rows = db.execute(query, (conversation_id,))
    return [message_from(row, places.versions(row["id"])) for row in rows]


def tree(db: sqlite3.Connection, conversation_id: int) -> Tree:
    """The places of all messages of a chat."""
    query = "SELECT id, parent, role, active FROM message WHERE conversation_id = ?"
    rows = db.execute(query, (conversation_id,))
    return Tree(Node(row["id"], row["parent"], row["role"], bool(row["active"])) for row in rows)


def find(db: sqlite3.Connection, message_id: int) -> MessageRow | None:
    """One message, if there is such."""
    row = db.execute("SELECT * FROM message WHERE id = ?", (message_id,)).fetchone()
    return None if row is None else message_from(row)


def activate(db: sqlite3.Connection, conversation_id: int, path: Sequence[int]) -> None:
    """Show the messages of `path`, and no others of the chat."""
    update = "UPDATE message SET active = 0 WHERE conversation_id = ? AND active = 1"
    db.execute(update, (conversation_id,))
    db.executemany("UPDATE message SET active = 1 WHERE id = ?", [(message_id,) for message_id in path])


def reopen(db: sqlite3.Connection, message_id: int, run: str) -> None:
    """Make a finished answer one that the program `run` is writing."""
    ended = "finished = NULL, reason = '', note = '', seen_from = NULL"
    update = f"UPDATE message SET state = 'streaming', run = ?, {ended} WHERE id = ?"
    db.execute(update, (run, message_id))


def set_parents(db: sqlite3.Connection, parents: Mapping[int, int | None]) -> None:
    """Have messages (those that still exist) follow others."""
    update = "UPDATE message SET parent = ? WHERE id = ?"
    db.executemany(update, [(parent, message_id) for message_id, parent in parents.items()])


def has_followers(db: sqlite3.Connection, message_id: int) -> bool:
    """Whether anything was written after a message."""
    query = "SELECT 1 FROM message WHERE parent = ? LIMIT 1"
    return db.execute(query, (message_id,)).fetchone() is not None


def end_edit(db: sqlite3.Connection, message_id: int) -> None:
    """Forget what a message's text was being changed to."""
    db.execute("DELETE FROM edit WHERE message_id = ?", (message_id,))


def remove(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Remove messages for good."""
    db.executemany("DELETE FROM message WHERE id = ?", [(message_id,) for message_id in ids])


def raw(db: sqlite3.Connection, message_id: int) -> dict[str, Any]:
    """A message with all its columns, for `insert_raw`."""
    return dict(db.execute("SELECT * FROM message WHERE id = ?", (message_id,)).fetchone())


def insert_raw(db: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put removed messages back with their ids, parents first."""
    for row in rows:
        insert = f"INSERT INTO message ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        db.execute(insert, tuple(row.values()))


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
        (conversation_id, parent, role, content, state, created, clean_text(model), dump_json(params), run),
    )
    return message_from(db.execute("SELECT * FROM message WHERE id = ?", (cursor.lastrowid,)).fetchone())


def append_version(
    db: sqlite3.Connection,
    shown: MessageRow,
    content: str,
    state: MessageState,
    *,
    created: int,
    finished: int | None = None,
    reason: str = "",
    note: str = "",
    params: JsonObject | None = None,
    run: str | None = None,
) -> MessageRow:
    """Add a version of the message `shown` that is not shown itself."""
    cursor = db.execute(
        "INSERT INTO message (conversation_id, parent, active, role, content, state, created, finished,"
        " model, reason, note, params, run, seen_from) VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            shown.conversation_id,
            shown.parent,
            shown.role,
            content,
            state,
            created,
            finished,
            shown.model,
            reason,
            note,
            dump_json(params),
            run,
            shown.seen_from,
        ),
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
