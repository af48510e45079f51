"""The chat list: order, previews, and what a search finds in titles and texts."""

from __future__ import annotations

import itertools
import sqlite3

from app.attachments.form import HEAD, parse
from app.storage.index import hits
from app.storage.rows import Summary, conversation_from
from app.storage.search_query import PREVIEW_CHARACTERS, Query, shorten, snippet
from app.text import fold

MOST_FOUND = 200  # chats that a search shows; who sees more has to say more
_MOST_HITS = 20_000  # messages that are looked through for them, about 20 ms

_COUNT = "(SELECT count(*) FROM message WHERE conversation_id = c.id AND active = 1)"
# What was typed stands behind the attached files, so a message with files is read whole.
_SHOWN = (
    f"CASE WHEN role = 'user' AND substr(content, 1, {len(HEAD)}) = '{HEAD}' THEN content"
    f" ELSE substr(content, 1, {2 * PREVIEW_CHARACTERS}) END"
)
_LATEST = (
    f"(SELECT {_SHOWN} FROM message"
    " WHERE conversation_id = c.id AND active = 1 AND content <> '' ORDER BY id DESC LIMIT 1)"
)
_LAST = "(SELECT max(id) FROM message WHERE conversation_id = c.id AND active = 1)"
_SELECT = f"SELECT c.*, {_COUNT} AS messages, {_LATEST} AS preview FROM conversation AS c"


class SummaryCache:
    """The list as it was read last: of thousands of chats, few are another at the next look.

    The key of a line is everything in its chat's row, with the id of the last message that is shown: each
    change of a message changes one of the two, but for the text so far of an answer that is being written.
    """

    def __init__(self) -> None:
        self._lines: dict[int, tuple[tuple[object, ...], Summary]] = {}

    def read(self, db: sqlite3.Connection, *, archived: bool | None) -> list[Summary]:
        """The chats that are not deleted, the pinned ones first. Raises `sqlite3.Error`."""
        which = "" if archived is None else f" AND archived = {int(archived)}"
        rows = db.execute(
            f"SELECT c.*, {_LAST} FROM conversation AS c WHERE deleted IS NULL{which}"
            " ORDER BY pinned DESC, activity DESC"
        )
        before, self._lines = self._lines, {}
        found = []
        for row in rows:
            key = tuple(row)
            known = before.get(row["id"])
            line = known if known is not None and known[0] == key else (key, _line(db, row["id"]))
            self._lines[row["id"]] = line
            found.append(line[1])
        return found


def _line(db: sqlite3.Connection, conversation_id: int) -> Summary:
    return _summary(db.execute(f"{_SELECT} WHERE id = ?", (conversation_id,)).fetchone())


def list_deleted(db: sqlite3.Connection) -> list[Summary]:
    """The deleted chats that hold something, the last deleted first. Raises `sqlite3.Error`."""
    holding = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE conversation_id = c.id)"
        for table in ("message", "deleted_turn")
    )
    rows = db.execute(f"{_SELECT} WHERE deleted IS NOT NULL AND ({holding}) ORDER BY deleted DESC, id DESC")
    return [_summary(row) for row in rows]


class TitleCache:
    """All titles, folded: each letter that is typed into the search field looks through them."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None  # which changes of others and of ours they have
        self._titles: list[tuple[int, str]] = []

    def read(self, db: sqlite3.Connection) -> list[tuple[int, str]]:
        """(id, folded title) of the chats that are not deleted, the latest change first."""
        seen = (db.execute("PRAGMA data_version").fetchone()[0], db.total_changes)
        if seen != self._seen:
            query = "SELECT id, title FROM conversation WHERE deleted IS NULL ORDER BY activity DESC"
            self._titles = [(chat, fold(title)) for chat, title in db.execute(query)]
            self._seen = seen
        return self._titles


def search_conversations(db: sqlite3.Connection, query: Query, titles: TitleCache) -> list[Summary]:
    """The chats whose title or one of whose shown messages has all terms. Raises `sqlite3.Error`.

    The latest change comes first, whether pinned, archived or not. Of a word that is everywhere, the chats
    with the newest messages are found.
    """
    known = titles.read(db)
    alive = {chat for chat, _ in known}
    by_title = (chat for chat, title in known if query.finds(title))
    found: dict[int, int | None] = dict.fromkeys(itertools.islice(by_title, MOST_FOUND))
    for seen, (chat, message) in enumerate(hits(db, query)):
        if seen >= _MOST_HITS or len(found) >= MOST_FOUND:
            break
        if chat in alive and found.get(chat) is None:
            found[chat] = message
    return [_found(db, row, found[row["id"]], query) for row in _rows(db, list(found))]


def _rows(db: sqlite3.Connection, ids: list[int]) -> list[sqlite3.Row]:
    marks = ",".join("?" * len(ids))
    return db.execute(f"{_SELECT} WHERE id IN ({marks}) ORDER BY activity DESC", ids).fetchall()


def _found(db: sqlite3.Connection, row: sqlite3.Row, place: int | None, query: Query) -> Summary:
    if place is None:
        return _summary(row)
    text = db.execute("SELECT content FROM message WHERE id = ?", (place,)).fetchone()["content"]
    return Summary(conversation_from(row), snippet(text, query), row["messages"], place)


def _summary(row: sqlite3.Row) -> Summary:
    words = parse(row["preview"] or "").headline[: 2 * PREVIEW_CHARACTERS]
    preview = shorten(" ".join(words.split()))
    return Summary(conversation_from(row), preview, row["messages"])
