"""The chat list: order, previews, and the search over titles and texts."""

from __future__ import annotations

import sqlite3

from app.storage.rows import Summary, conversation_from
from app.text import fold

PREVIEW_CHARACTERS = 160
_BEFORE_MATCH = 40  # characters of context before a match in its snippet

_COUNT = "(SELECT count(*) FROM message WHERE conversation_id = c.id AND active = 1)"
_LATEST = (
    f"(SELECT substr(content, 1, {2 * PREVIEW_CHARACTERS}) FROM message"
    " WHERE conversation_id = c.id AND active = 1 AND content <> '' ORDER BY id DESC LIMIT 1)"
)


def list_conversations(db: sqlite3.Connection, search: str | None) -> list[Summary]:
    """The chats that are not deleted, the latest change first. Raises `sqlite3.Error`."""
    sought = (search or "").strip()
    if not sought:
        query = (
            f"SELECT c.*, {_COUNT} AS messages, {_LATEST} AS preview FROM conversation AS c"
            " WHERE deleted IS NULL ORDER BY activity DESC"
        )
        return [_summary(row, row["preview"] or "") for row in db.execute(query)]
    contains, argument = _contains(sought)
    hit = (
        f"(SELECT content FROM message WHERE conversation_id = c.id AND active = 1"
        f" AND {contains.format('content')} ORDER BY id DESC LIMIT 1)"
    )
    query = (
        f"SELECT * FROM (SELECT c.*, {_COUNT} AS messages, {_LATEST} AS preview, {hit} AS hit"
        " FROM conversation AS c WHERE deleted IS NULL)"
        f" WHERE hit IS NOT NULL OR {contains.format('title')} ORDER BY activity DESC"
    )
    rows = db.execute(query, {"sought": argument})
    return [_summary(row, _preview_of_match(row, sought)) for row in rows]


def snippet(text: str, sought: str, length: int = PREVIEW_CHARACTERS) -> str:
    """About `length` characters of `text` on one line, around the first place where `sought` is."""
    lowered = text.casefold()
    # Folding can change the length of a text; the place is then a little off, the snippet still near.
    place = max(lowered.find(sought.casefold()), 0)
    start = max(place - _BEFORE_MATCH, 0)
    piece = " ".join(text[start : start + 2 * length].split())
    return ("…" if start else "") + _shorten(piece, length)


def _contains(sought: str) -> tuple[str, str]:
    """A condition on a column `{}` with one parameter, and that parameter.

    LIKE ignores case for ASCII alone and limits its pattern's length; the rest is compared folded, slower.
    """
    if sought.isascii() and len(sought) <= 1000:
        escaped = sought.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return "{} LIKE :sought ESCAPE '\\'", f"%{escaped}%"
    return "instr(fold({}), :sought) > 0", fold(sought)


def _preview_of_match(row: sqlite3.Row, sought: str) -> str:
    return row["preview"] or "" if row["hit"] is None else snippet(row["hit"], sought)


def _summary(row: sqlite3.Row, preview: str) -> Summary:
    return Summary(conversation_from(row), _shorten(" ".join(preview.split())), row["messages"])


def _shorten(text: str, length: int = PREVIEW_CHARACTERS) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
