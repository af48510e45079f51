"""The store's operations on the messages of a chat: ask, answer, save what came so far."""

from __future__ import annotations

from collections.abc import Sequence

from app.i18n import tr
from app.storage import messages as table
from app.storage.base import Store
from app.storage.database import reading, transaction
from app.storage.errors import StorageError
from app.storage.figures import params_to_json, stats_to_json
from app.storage.rows import Exchange, MessageRow, MessageState, to_millis
from engine.events import FinishReason, GenerationStats
from engine.params import GenerationParams, Role
from engine.text import clean_text


class Exchanges(Store):
    """Questions and their answers."""

    def messages(self, conversation_id: int, *, all_versions: bool = False) -> list[MessageRow]:
        """A chat's messages in order; `all_versions` adds the answers that were regenerated or taken back."""
        with reading(self.path, tr("The messages could not be read.")):
            return table.of_conversation(self._db, conversation_id, all_versions=all_versions)

    def add_message(
        self,
        conversation_id: int,
        role: Role,
        content: str,
        *,
        state: MessageState = MessageState.COMPLETE,
        model: str = "",
        params: GenerationParams | None = None,
    ) -> MessageRow:
        """Append a message. It is on the disk when this returns."""
        with transaction(self._db, self.path, tr("The message could not be saved.")):
            return self._append(conversation_id, role, content, state, model, params)

    def begin_exchange(
        self,
        conversation_id: int,
        text: str,
        *,
        model: str = "",
        params: GenerationParams | None = None,
        others: Sequence[GenerationParams] = (),
    ) -> Exchange:
        """Save what the user sent together with an empty answer to fill: both, or neither.

        Each of `others` are the parameters of a further answer, here and in what begins other answers.
        """
        with transaction(self._db, self.path, tr("Your message could not be saved.")):
            self._append(conversation_id, "user", text)
            return self._answer(conversation_id, model, params, others)

    def begin_regeneration(
        self,
        conversation_id: int,
        *,
        model: str = "",
        params: GenerationParams | None = None,
        others: Sequence[GenerationParams] = (),
    ) -> Exchange:
        """Begin another answer to the last user message; the earlier answer is kept as an alternative."""
        with transaction(self._db, self.path, tr("The new answer could not be started.")):
            last = self._last_user_message(conversation_id)
            table.deactivate_after(self._db, conversation_id, last.id)
            return self._answer(conversation_id, model, params, others)

    def update_partial(self, message_id: int, content: str) -> None:
        """Save the text so far of an answer that is being generated; `StorageError` if it is not."""
        with transaction(self._db, self.path, tr("The answer so far could not be saved.")):
            if not table.update_unfinished(self._db, message_id, clean_text(content)):
                raise _already_finished()

    def save_seen_from(self, message_id: int, seen_from: int) -> None:
        """Keep from which message on the model read the chat for an answer."""
        with transaction(self._db, self.path, tr("What the model has read could not be saved.")):
            self._db.execute("UPDATE message SET seen_from = ? WHERE id = ?", (seen_from, message_id))

    def finish_message(
        self,
        message_id: int,
        content: str,
        state: MessageState = MessageState.COMPLETE,
        *,
        stats: GenerationStats | None = None,
        reason: FinishReason | None = None,
        note: str = "",
    ) -> MessageRow:
        """Save the whole answer and how it ended."""
        figures = None if stats is None else stats_to_json(stats)
        with transaction(self._db, self.path, tr("The answer could not be saved.")):
            row = table.finish(
                self._db,
                message_id,
                clean_text(content),
                state,
                finished=to_millis(self._clock()),
                stats=figures,
                reason=reason or "",
                note=clean_text(note),
            )
            if row is None:
                raise _already_finished()
            self._touch(row.conversation_id)
            return row

    def recover_interrupted(self) -> list[MessageRow]:
        """Mark the answers that a program left unfinished when it died; not those of a running one."""
        with transaction(self._db, self.path, tr("Interrupted answers could not be marked.")):
            marked = table.interrupt(self._db, self._dead_runs(table.streaming_runs(self._db)))
            # Of several answers to a question, those without a word are of no use as versions.
            empty = [row.id for row in marked if not row.active and not row.content]
            empty = [message_id for message_id in empty if not table.has_followers(self._db, message_id)]
            table.remove(self._db, empty)
            return [row for row in marked if row.id not in empty]

    # Inside a transaction

    def _append(
        self,
        conversation_id: int,
        role: Role,
        content: str,
        state: MessageState = MessageState.COMPLETE,
        model: str = "",
        params: GenerationParams | None = None,
    ) -> MessageRow:
        self._conversation(conversation_id)
        self._touch(conversation_id)
        return table.append(
            self._db,
            conversation_id,
            role,
            clean_text(content),
            state,
            created=to_millis(self._clock()),
            model=model,
            params=None if params is None else params_to_json(params),
            run=self._run.name if state is MessageState.STREAMING else None,
        )

    def _answer(
        self,
        conversation_id: int,
        model: str,
        params: GenerationParams | None,
        others: Sequence[GenerationParams] = (),
    ) -> Exchange:
        shown = self._append(conversation_id, "assistant", "", MessageState.STREAMING, model, params)
        further = [
            table.append_version(
                self._db,
                shown,
                "",
                MessageState.STREAMING,
                created=to_millis(shown.created),
                params=params_to_json(one),
                run=self._run.name,
            )
            for one in others
        ]
        *history, answer = table.of_conversation(self._db, conversation_id)
        return Exchange(tuple(history), answer, tuple(further))

    def _last_user_message(self, conversation_id: int) -> MessageRow:
        self._conversation(conversation_id)
        row = table.last_user_message(self._db, conversation_id)
        if row is None:
            raise StorageError(tr("There is no message to answer yet."), action=tr("Write one first."))
        return row


def _already_finished() -> StorageError:
    return StorageError(
        tr("The answer could not be saved."),
        why=tr("It is no longer in the list of chats, or was finished before."),
        action=tr("Copy the text if you need it, then open the chat again."),
    )
