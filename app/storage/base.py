"""What every part of the store has: the connection, the clock, and the row of a chat."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from app.i18n import tr
from app.storage.database import transaction
from app.storage.errors import StorageError
from app.storage.listing import SummaryCache, TitleCache
from app.storage.rows import Conversation, conversation_from, to_millis
from app.storage.runs import Run


def utc_now() -> datetime:
    """The time that is saved with a change."""
    return datetime.now(UTC)


class Store:
    """One SQLite file with chats. Its parts add the operations; see `ChatStore`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        run: Run,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._db = connection
        self._run = run
        self._clock = clock
        self._listed, self._titles = SummaryCache(), TitleCache()
        self.path = path

    def close(self) -> None:
        """Write the log back into the file and let go of it. Harmless when repeated."""
        self._db.close()
        self._run.release()

    # Inside a transaction

    def _conversation(self, conversation_id: int) -> Conversation:
        query = "SELECT * FROM conversation WHERE id = ?"
        row = self._db.execute(query, (conversation_id,)).fetchone()
        if row is None:
            raise StorageError(tr("This chat no longer exists."), action=tr("Choose another chat."))
        return conversation_from(row)

    def _set(self, conversation_id: int, column: str, value: object) -> Conversation:
        with transaction(self._db, self.path, tr("The chat could not be changed.")):
            update = f"UPDATE conversation SET {column} = ? WHERE id = ?"
            self._db.execute(update, (value, conversation_id))
            return self._conversation(conversation_id)

    def _touch(self, conversation_id: int) -> None:
        self._db.execute(
            "UPDATE conversation SET updated = ?, activity ="
            " (SELECT max(activity) + 1 FROM conversation) WHERE id = ?",
            (to_millis(self._clock()), conversation_id),
        )

    def _dead_runs(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self._run.is_alive(name)]
