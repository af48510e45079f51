"""The search index over the messages' folded texts. Called by `ChatStore`; raises `sqlite3.Error`.

Triggers note every changed message in the table `unindexed`; the index follows when there is time, and at the
latest before a search. So writing an answer stays cheap, and no writer can forget the index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from app.storage.schema import INDEX
from app.storage.search_query import Query
from app.text import fold

AT_ONCE = 50  # messages that are indexed in one transaction, about 25 ms
_RARE = 5_000  # messages with a short term: up to here they are looked up, beyond the newest are scanned
# Two ends of line after each text: its last characters, too, then begin a run of three.
_END = "\n\n"


def is_behind(db: sqlite3.Connection) -> bool:
    """Whether messages wait to be indexed."""
    return db.execute("SELECT 1 FROM unindexed LIMIT 1").fetchone() is not None


def catch_up(db: sqlite3.Connection, most: int = AT_ONCE) -> None:
    """Index up to `most` changed messages, inside a transaction."""
    ids = [row[0] for row in db.execute("SELECT id FROM unindexed ORDER BY id DESC LIMIT ?", (most,))]
    for message_id in ids:
        db.execute("DELETE FROM message_index WHERE rowid = ?", (message_id,))
        row = db.execute("SELECT content FROM message WHERE id = ?", (message_id,)).fetchone()
        if row is not None and row["content"]:
            insert = "INSERT INTO message_index (rowid, body) VALUES (?, ?)"
            db.execute(insert, (message_id, fold(row["content"]) + _END))
    db.executemany("DELETE FROM unindexed WHERE id = ?", [(message_id,) for message_id in ids])


def forget_deleted(db: sqlite3.Connection) -> None:
    """Overwrite what the index still holds of messages that are gone, inside a transaction."""
    while db.execute("SELECT 1 FROM unindexed WHERE id NOT IN (SELECT id FROM message) LIMIT 1").fetchone():
        catch_up(db)
    db.execute("INSERT INTO message_index (message_index) VALUES ('optimize')")


def rebuild(db: sqlite3.Connection) -> None:
    """Begin a damaged index anew, inside a transaction; `catch_up` then fills it."""
    db.execute("DROP TABLE IF EXISTS message_terms")
    db.execute("DROP TABLE IF EXISTS message_index")
    for statement in INDEX:
        db.execute(statement)
    db.execute("INSERT OR IGNORE INTO unindexed SELECT id FROM message WHERE state <> 'streaming'")


def hits(db: sqlite3.Connection, query: Query) -> Iterator[tuple[int, int]]:
    """(conversation id, message id) of the shown messages that hold all terms, the newest message first."""
    conditions: list[str] = []
    values: list[object] = []
    if query.indexed:
        conditions.append("message_index MATCH ?")
        values.append(query.match())
    elif query.short:
        rare = next((ids for term in query.short if (ids := _with_rare(db, term)) is not None), None)
        if rare is not None:
            conditions.append(f"message_index.rowid IN ({','.join(map(str, rare))})")
    for term in query.short:
        conditions.append("instr(body, ?) > 0")
        values.append(term)
    rows = db.execute(
        "SELECT m.conversation_id, m.id FROM message_index JOIN message AS m ON m.id = message_index.rowid"
        f" WHERE {' AND '.join(conditions)} AND m.active = 1 ORDER BY message_index.rowid DESC",
        values,
    )
    return ((row[0], row[1]) for row in rows)


def _with_rare(db: sqlite3.Connection, term: str) -> list[int] | None:
    """The messages with a term of one or two characters; None if they are too many to be listed."""
    query = "SELECT DISTINCT doc FROM message_terms WHERE term >= ? AND term < ? LIMIT ?"
    ids = [row[0] for row in db.execute(query, (term, term + "\U0010ffff", _RARE))]
    return ids if len(ids) < _RARE else None
