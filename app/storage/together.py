"""The store's operations on answers that come several at a time, as versions of one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.i18n import tr
from app.storage import messages as table
from app.storage.database import transaction
from app.storage.rows import MessageState, to_millis
from app.storage.versions import Versions
from engine.events import FinishReason
from engine.text import clean_text


@dataclass(frozen=True)
class OtherAnswer:
    """An answer that was found beside the one that is shown."""

    content: str
    reason: FinishReason
    note: str = ""


class Together(Versions):
    """Both return the chat's id: its messages have other versions now."""

    def add_other_answers(self, message_id: int, answers: Sequence[OtherAnswer]) -> int:
        """Add finished versions beside an answer, which stays the one that is shown."""
        with transaction(self._db, self.path, tr("The other answers could not be saved.")):
            row = self._message(message_id)
            now = to_millis(self._clock())
            for answer in answers:
                table.append_version(
                    self._db,
                    row,
                    clean_text(answer.content),
                    MessageState.COMPLETE,
                    created=now,
                    finished=now,
                    reason=answer.reason,
                    note=answer.note,
                    params=row.params,
                )
            return row.conversation_id

    def drop_empty_version(self, message_id: int) -> int:
        """Remove a version of an answer that never got a word and is not shown."""
        with transaction(self._db, self.path, tr("An empty version could not be removed.")):
            row = self._message(message_id)
            if not row.active and not row.content:
                table.remove(self._db, [message_id])
            return row.conversation_id
