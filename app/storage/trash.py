"""The store's operations on what was deleted: kept for some days, brought back, or removed for good.

A deleted chat stays in its table, marked. A deleted turn leaves the table of messages, so that nothing else
has to look out for it, and is kept as JSON with what is needed to put it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.i18n import tr
from app.storage import index
from app.storage import messages as table
from app.storage.database import reading, transaction
from app.storage.errors import StorageError
from app.storage.listing import list_deleted
from app.storage.rows import MessageRow, Summary, from_millis, to_millis
from app.storage.search_query import shorten
from app.storage.versions import Versions

KEEP_DELETED = timedelta(days=7)  # how long a deleted chat or turn can be brought back


@dataclass(frozen=True)
class DeletedTurn:
    """A question with its answers that can be brought back; `title` is the chat's, `text` its beginning."""

    id: int
    conversation_id: int
    title: str
    text: str
    deleted: datetime


@dataclass(frozen=True)
class _Content:
    """What brings a turn back.

    The first of `rows` has the parent that it would have if nothing had been deleted; `followers` are the
    messages that would then follow the turn, each with the one that it followed. Either may be deleted, too.
    `end` was the last message that was shown; `edits` are the changes to the messages that were not saved.
    """

    rows: Sequence[dict[str, Any]]
    followers: dict[int, int | None]
    end: int | None
    edits: dict[int, str]

    def to_json(self) -> str:
        """The content as it is stored."""
        return json.dumps(vars(self), ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> _Content | None:
        """The inverse of `to_json` (keys are texts there); None where damage has left something else."""
        try:
            value = json.loads(text)
            followers: dict[int, int | None] = {
                int(key): parent for key, parent in value["followers"].items()
            }
            edits = {int(key): str(edit) for key, edit in value["edits"].items()}
            rows = [{"parent": None, **row, "id": int(row["id"])} for row in value["rows"]]
            return _Content(rows, followers, value["end"], edits) if rows else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class Trash(Versions):
    """Nothing is gone before its days are over, or the user says so."""

    def delete_turn(self, message_id: int) -> tuple[DeletedTurn, list[MessageRow]]:
        """Delete a question with its answers; what followed moves up. The second are the messages left."""
        with transaction(self._db, self.path, tr("The turn could not be deleted.")):
            chat = self._message(message_id).conversation_id
            tree = table.tree(self._db, chat)
            turn = tree.turn_of(message_id)
            shown = [node.id for node in tree.nodes.values() if node.active]
            parents = self._parents(chat)
            followers: dict[int, int | None] = {
                message: parent
                for message, parent in parents.items()
                if parent in turn and message not in turn
            }
            rows = [table.raw(self._db, place) for place in turn]
            rows[0]["parent"] = parents[turn[0]]
            content = _Content(rows, followers, shown[-1] if shown else None, self._edits(turn))
            kept = self._keep_turn(chat, content)
            table.remove(self._db, turn)
            self._reattach(chat, {**parents, **dict(self._deleted_parents(chat))})
            self._touch(chat)
            left = [place for place in shown if place not in turn]
            after = table.tree(self._db, chat).newest_after(left[-1] if left else None)
            deleted = self._turn(kept)
            assert deleted is not None
            return deleted, self._show_path(chat, (*left, *after))

    def restore_turn(self, deleted_id: int) -> tuple[int, list[MessageRow]]:
        """Bring a deleted turn back and show it; the chat, and the messages that are shown there."""
        with transaction(self._db, self.path, tr("The turn could not be brought back.")):
            chat, content = self._kept_turn(deleted_id)
            parents = self._parents(chat)
            self._db.execute("DELETE FROM deleted_turn WHERE id = ?", (deleted_id,))
            first = content.rows[0]["id"]
            table.insert_raw(self._db, [{**content.rows[0], "parent": None}, *content.rows[1:]])
            self._reattach(chat, parents)
            insert = "INSERT INTO edit (message_id, content) VALUES (?, ?)"
            self._db.executemany(insert, list(content.edits.items()))
            self._touch(chat)
            tree = table.tree(self._db, chat)
            path = tree.path_through(first)
            if content.end in tree.nodes and first in (through := tree.path_through(content.end or 0)):
                path = through
            return chat, self._show_path(chat, path)

    def deleted(self) -> tuple[list[Summary], list[DeletedTurn]]:
        """The chats, and the turns of other chats, that can be brought back; the last deleted first."""
        with reading(self.path, tr("The list of what was deleted could not be read.")):
            query = (
                "SELECT t.id FROM deleted_turn AS t JOIN conversation AS c ON c.id = t.conversation_id"
                " WHERE c.deleted IS NULL ORDER BY t.deleted DESC, t.id DESC"
            )
            turns = [self._turn(row["id"]) for row in self._db.execute(query).fetchall()]
            return list_deleted(self._db), [turn for turn in turns if turn is not None]

    def remove_for_good(self, chats: Sequence[int], turns: Sequence[int]) -> None:
        """Remove deleted chats and turns now; nothing that is not deleted."""
        with transaction(self._db, self.path, tr("What was deleted could not be removed.")):
            remove = "DELETE FROM conversation WHERE id = ? AND deleted IS NOT NULL"
            self._db.executemany(remove, [(chat,) for chat in chats])
            self._forget(turns)
            index.forget_deleted(self._db)

    def purge(self, keep: timedelta = KEEP_DELETED) -> int:
        """Remove for good what was deleted more than `keep` ago; return the number of chats and turns."""
        before = to_millis(self._clock() - keep)
        with transaction(self._db, self.path, tr("Deleted chats could not be removed.")):
            query = "SELECT id FROM deleted_turn WHERE deleted <= ? ORDER BY id"
            turns = [row["id"] for row in self._db.execute(query, (before,)).fetchall()]
            self._forget(turns)
            chats = self._db.execute("DELETE FROM conversation WHERE deleted <= ?", (before,)).rowcount
            if turns or chats:
                index.forget_deleted(self._db)
            return chats + len(turns)

    # Inside a transaction

    def _keep_turn(self, chat: int, content: _Content) -> int:
        insert = "INSERT INTO deleted_turn (conversation_id, deleted, content) VALUES (?, ?, ?)"
        values = (chat, to_millis(self._clock()), content.to_json())
        return self._db.execute(insert, values).lastrowid or 0

    def _kept_turn(self, deleted_id: int) -> tuple[int, _Content]:
        query = "SELECT conversation_id, content FROM deleted_turn WHERE id = ?"
        row = self._db.execute(query, (deleted_id,)).fetchone()
        content = None if row is None else _Content.from_json(row["content"])
        if content is None:
            raise StorageError(
                tr("The turn could not be brought back."),
                why=tr("It is there again already, or was removed for good."),
                action=tr("Open the chat again."),
            )
        return row["conversation_id"], content

    def _turn(self, deleted_id: int) -> DeletedTurn | None:
        query = (
            "SELECT t.*, c.title FROM deleted_turn AS t JOIN conversation AS c ON c.id = t.conversation_id"
            " WHERE t.id = ?"
        )
        row = self._db.execute(query, (deleted_id,)).fetchone()
        content = _Content.from_json(row["content"])
        if content is None:
            return None
        text = " ".join(str(content.rows[0].get("content", "")).split())
        return DeletedTurn(
            row["id"], row["conversation_id"], row["title"], shorten(text), from_millis(row["deleted"])
        )

    def _edits(self, turn: Sequence[int]) -> dict[int, str]:
        marks = ",".join("?" * len(turn))
        query = f"SELECT message_id, content FROM edit WHERE message_id IN ({marks})"
        return {row[0]: row[1] for row in self._db.execute(query, turn)}

    def _turns_of(self, chat: int) -> list[tuple[int, _Content]]:
        """The deleted turns of a chat."""
        query = "SELECT id, content FROM deleted_turn WHERE conversation_id = ?"
        rows = self._db.execute(query, (chat,))
        read = [(row["id"], _Content.from_json(row["content"])) for row in rows]
        return [(deleted_id, content) for deleted_id, content in read if content is not None]

    def _deleted_parents(self, chat: int) -> Iterator[tuple[int, int | None]]:
        for _, content in self._turns_of(chat):
            yield from ((row["id"], row["parent"]) for row in content.rows)
            yield from content.followers.items()

    def _parents(self, chat: int) -> dict[int, int | None]:
        """What each message of a chat follows, as if nothing had been deleted."""
        nodes = table.tree(self._db, chat).nodes.values()
        return {node.id: node.parent for node in nodes} | dict(self._deleted_parents(chat))

    def _reattach(self, chat: int, parents: dict[int, int | None]) -> None:
        """Have each message follow the nearest one before it that is there."""
        there = table.tree(self._db, chat).nodes

        def nearest(parent: int | None) -> int | None:
            while parent is not None and parent not in there:
                parent = parents.get(parent)
            return parent

        wanted = {message: nearest(parents.get(message)) for message in there}
        changed = {message: parent for message, parent in wanted.items() if there[message].parent != parent}
        table.set_parents(self._db, changed)

    def _forget(self, turns: Sequence[int]) -> None:
        """Remove deleted turns; those that followed them then follow what they had followed."""
        for deleted_id in turns:
            query = "SELECT conversation_id FROM deleted_turn WHERE id = ?"
            row = self._db.execute(query, (deleted_id,)).fetchone()
            if row is None:
                continue
            others = dict(self._turns_of(row["conversation_id"]))
            gone = others.pop(deleted_id, None)
            self._db.execute("DELETE FROM deleted_turn WHERE id = ?", (deleted_id,))
            if gone is None:
                continue
            ids, first = [row["id"] for row in gone.rows], gone.rows[0]
            for other_id, other in others.items():
                if other.rows[0]["parent"] in ids:
                    other.rows[0]["parent"] = first["parent"]
                if first["id"] in other.followers:
                    other.followers.update(dict.fromkeys(gone.followers, other.followers.pop(first["id"])))
                update = "UPDATE deleted_turn SET content = ? WHERE id = ?"
                self._db.execute(update, (other.to_json(), other_id))
