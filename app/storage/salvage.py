"""Rescue what can still be read from a damaged database into a fresh one.

Rows are read by ranges of their ids. A range that meets a damaged page is halved until the unreadable ids
stand alone, so one bad page costs its own rows and no others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from app.i18n import tr
from app.storage.database import UNREADABLE
from app.storage.rows import MessageState, to_millis
from engine.params import Role

_RANGE = 512  # ids read at once from sound pages
_MOST_IDS = 10_000_000  # a damaged counter may claim anything
_MOST_GONE = 100_000  # ids behind the last one that is left, for the same reason
_LATEST = to_millis(datetime(9999, 12, 31, tzinfo=UTC))
_TIMES = {"created", "updated", "finished", "deleted"}
_OPTIONAL = {"finished", "deleted"}
_NUMBERS: dict[str, int | None] = {"activity": 0, "seen_from": None}  # and what they are without one
_DETAILS = {"title", "model", "system_prompt", "reason", "note"}  # texts that may be empty, not missing
_DEFAULTS: dict[str, tuple[Sequence[object], object]] = {
    "state": (tuple(MessageState), MessageState.INTERRUPTED),
    "role": (get_args(Role), "assistant"),
    "active": ((0, 1), 1),
    "pinned": ((0, 1), 0),
    "archived": ((0, 1), 0),
}
_COUNTED = ("conversation", "message")
_NUMBERED = (*_COUNTED, "deleted_turn")  # tables whose ids are never used twice
_OF_CHATS = ("draft", "draft_files", "next_message", "deleted_turn")  # what goes with a chat that is lost


@dataclass(frozen=True)
class Salvaged:
    """How much was rescued."""

    conversations: int = 0
    messages: int = 0


def salvage(damaged: Path, target: sqlite3.Connection) -> Salvaged:
    """Copy the readable chats, messages and drafts of `damaged` into `target`, an empty store.

    Ids are kept. Messages whose chat is lost get a chat of their own. The damaged file is only read. Raises
    `sqlite3.Error` for trouble with `target` alone.
    """
    try:
        source = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error:
        return Salvaged()
    with closing(source):
        source.text_factory = lambda raw: raw.decode("utf-8", "replace")
        target.execute("BEGIN IMMEDIATE")
        try:
            for table in ("conversation", "message", "edit", *_OF_CHATS):
                _copy(source, target, table)
            for table in _NUMBERED:
                _go_on_counting(source, target, table)
            _adopt_orphans(target)
            counts = [target.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _COUNTED]
            target.execute("COMMIT")
        except BaseException:
            if target.in_transaction:
                target.execute("ROLLBACK")
            raise
    return Salvaged(*counts)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
    try:
        theirs = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except UNREADABLE:
        return
    columns = [row["name"] for row in target.execute(f"PRAGMA table_info({table})") if row["name"] in theirs]
    if not columns:
        return
    names = ", ".join(columns)
    # Foreign keys are checked at the commit: a message may come before its parent, or without its chat.
    target.execute("PRAGMA defer_foreign_keys = ON")
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    for row in _readable_rows(source, table, names):
        values = [_mended(name, value) for name, value in zip(columns, row, strict=True)]
        with suppress(sqlite3.IntegrityError):  # nothing but a damaged page holds such a row
            target.execute(insert, values)


def _mended(column: str, value: object) -> object:
    """`value` as the tables take it: a message with a damaged time or state is still worth its text."""
    if column in _TIMES:
        sound = isinstance(value, int) and 0 <= value <= _LATEST
        return value if sound or (value is None and column in _OPTIONAL) else 0
    if column in _NUMBERS:
        return value if isinstance(value, int) else _NUMBERS[column]
    if column in _DETAILS and value is None:
        return ""
    if column in _DEFAULTS:
        allowed, default = _DEFAULTS[column]
        return value if value in allowed else default
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _go_on_counting(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
    """The next id is one that no row ever had: those of a turn in the trash must stay free for it."""
    found: int = target.execute(f"SELECT ifnull(max(id), 0) FROM {table}").fetchone()[0]
    claimed = _last_id(source, table)
    last = claimed if found < claimed <= found + _MOST_GONE else found
    target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


def _readable_rows(source: sqlite3.Connection, table: str, names: str) -> Iterator[tuple[object, ...]]:
    last = _last_id(source, table)
    pending = [(first, min(first + _RANGE - 1, last)) for first in range(1, last + 1, _RANGE)][::-1]
    while pending:
        first, end = pending.pop()
        # NOT INDEXED: straight through the table's own tree, whatever state its indexes are in.
        query = f"SELECT {names} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ?"
        try:
            rows = source.execute(query, (first, end)).fetchall()
        except UNREADABLE:
            if first < end:
                middle = (first + end) // 2
                pending += [(middle + 1, end), (first, middle)]
            continue
        yield from rows


def _last_id(source: sqlite3.Connection, table: str) -> int:
    """The highest id that the table or the counter of its ids tells of."""
    claims = [0]
    for query, values in (
        (f"SELECT max(rowid) FROM {table} NOT INDEXED", ()),
        ("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)),
    ):
        try:
            row = source.execute(query, values).fetchone()
        except UNREADABLE:
            continue
        if row is not None and isinstance(row[0], int):
            claims.append(row[0])
    return min(max(claims), _MOST_IDS)


def _adopt_orphans(target: sqlite3.Connection) -> None:
    """Give messages without their chat one, and loosen what points at rows that are gone."""
    lost = "NOT IN (SELECT id FROM conversation)"
    for table in _OF_CHATS:
        target.execute(f"DELETE FROM {table} WHERE conversation_id {lost}")
    target.execute(
        "INSERT INTO conversation (id, title, created, updated, activity)"
        " SELECT conversation_id, ?, min(created), max(created), 0 FROM message"
        f" WHERE conversation_id {lost} GROUP BY conversation_id",
        (tr("Rescued chat"),),
    )
    target.execute("DELETE FROM edit WHERE message_id NOT IN (SELECT id FROM message)")
    target.execute("UPDATE message SET parent = NULL WHERE parent NOT IN (SELECT id FROM message)")
