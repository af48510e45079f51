"""Joins the composer to the session and the store: drafts, what waits, messages sent before, tokens."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.attachments.form import Attachment, compose, merged
from app.chat.model_strip import ModelStrip
from app.chat.session import ChatSession
from app.composer.composer import Composer, ComposerState
from app.composer.gate import TokenGate
from app.composer.history import MessageHistory
from app.composer.waiting import WaitingMessages, ended_well
from app.engine_factory import TokenCounter
from app.i18n import tr
from app.storage import ChatStore, Conversation, MessageRow, StorageError
from app.storage.thread import StorageThread


class ComposerControl(QObject):
    """Nothing that is written is lost: it is in the composer, waits, or was sent; and it is on the disk."""

    chats_found = Signal(object)  # list of Path: files with chats among those that were dropped

    def __init__(
        self,
        composer: Composer,
        session: ChatSession,
        storage: StorageThread,
        strip: ModelStrip,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self.composer, self._session, self._storage, self._strip = composer, session, storage, strip
        self.waiting = WaitingMessages(storage)
        self._gate = TokenGate(composer, session, self)
        self._history = MessageHistory()
        self._removed: list[str] = []  # messages that waited and were removed: Up brings them back
        self._chat: int | None = None  # the chat whose draft the composer holds
        self._restoring = False  # the composer changes without the user
        self._reading: object | None = None  # the reading of the draft that is under way
        self._suggested = ""  # the text that was suggested last
        self._on_its_way: tuple[int | None] | None = None  # the chat whose waiting message is being saved
        self._ended: MessageRow | None = None  # the answer that ended last, until what waits has followed
        self._connect()
        self._on_opened(None, [])

    @Slot(object)
    def use_counter(self, counter: TokenCounter | None) -> None:
        """Another model counts the tokens, or none."""
        self._gate.use(counter)
        self.refresh()

    def suggest(self, text: str) -> None:
        """Put a text into the field, to be sent or changed; below what the user has written there."""
        written = self.composer.text.strip()
        self.composer.set_text(f"{written}\n{text}" if written not in ("", self._suggested) else text)
        self._suggested = text

    def attach(self) -> None:
        """Ask for files to attach."""
        self.composer.files.ask()

    @Slot(object)
    def take_files(self, paths: list[Path]) -> None:
        """Attach the files that were dropped; `chats_found` tells of those with chats."""
        self.composer.files.add_paths(paths, may_be_chats=True)

    @Slot()
    def refresh(self) -> None:
        """Show what can be done now."""
        session = self._session
        shown = session.conversation.id if session.conversation else None
        if session.busy:
            elsewhere = session.answering_id not in (None, shown)
            reason = tr("An answer is being written in another chat. Escape stops it.") if elsewhere else ""
            self.composer.set_state(ComposerState.GENERATING, reason)
        elif session.model is None:
            if self._strip.loading:
                reason = tr("You can write already. Sending works once the model is loaded.")
            else:
                reason = tr("You can write, but there is no model yet that could answer.")
            self.composer.set_state(ComposerState.UNAVAILABLE, reason)
        else:
            self.composer.set_state(ComposerState.READY)

    def _connect(self) -> None:
        session, composer = self._session, self.composer
        composer.send_requested.connect(self._send)
        composer.wait_requested.connect(self._let_wait)
        composer.stop_requested.connect(session.stop)
        composer.changed.connect(self._on_changed)
        composer.waiting.edit_requested.connect(self._edit_waiting)
        composer.waiting.remove_requested.connect(self._remove_waiting)
        composer.files.chats_found.connect(self.chats_found)
        composer.files.read_elsewhere.connect(self._keep_files)
        composer.edit.call_back = self._call_back
        self._strip.changed.connect(self.refresh)
        session.opened.connect(self._on_opened)
        session.begun.connect(self._on_begun)
        session.refused.connect(self._give_back)
        session.message_finished.connect(self._on_finished)
        session.busy_changed.connect(self._on_busy)

    # Drafts

    @Slot(object, object)
    def _on_opened(self, conversation: Conversation | None, _rows: object) -> None:
        self.keep()
        self._chat = chat = conversation.id if conversation else None
        self._history.leave()  # the draft on the disk has what was being written
        self._removed.clear()
        self.composer.files.go_to(chat)
        self._fill("")
        self.composer.show_waiting(self.waiting.of(chat))
        self._storage.flush()
        # What waits for nothing any more, since the program ended, comes back into the composer.
        waits = bool(self.waiting.of(chat)) or self._on_its_way == (chat,)
        read = ChatStore.draft if waits else ChatStore.take_back_next
        reading = self._reading = object()
        self._storage.run(read, chat).then(
            lambda draft: self._restore(reading, draft), lambda error: self._not_restored(reading, error)
        )
        self.refresh()

    @Slot(object, object)
    def _keep_files(self, chat: int | None, files: tuple[Attachment, ...]) -> None:
        """Files were read that had been chosen for a chat which was left meanwhile."""
        self._storage.flush()  # what was typed there is on the disk before
        self._storage.run(_add_to_draft, chat, compose(files, ""))

    def keep(self) -> None:
        """The chat is left, or the program: what was typed while its draft is still read joins that."""
        if self._reading is not None and self.composer.content:
            self._storage.run(_add_to_draft, self._chat, self.composer.content)
        self._reading = None

    @Slot(object)
    def _on_begun(self, conversation: Conversation) -> None:
        if self._reading is None:  # else the disk may have more than what is seen here
            self._storage.save_draft(None, "")  # what was typed since the message was sent is this chat's
        self._chat, self._reading = conversation.id, None
        self.composer.files.move_to(conversation.id)
        self.waiting.begun(conversation.id)
        self.composer.show_waiting(self.waiting.of(conversation.id))
        if self.composer.content:
            self._save_draft()

    def _restore(self, reading: object, draft: str) -> None:
        if reading is not self._reading:
            return  # a chat was opened since, perhaps the same one again
        self._reading = None
        written = self.composer.content  # typed while it was read
        if draft:
            self._fill(merged(draft, written) if written else draft)
        if written:
            self._save_draft()

    def _not_restored(self, reading: object, error: StorageError) -> None:
        self._restore(reading, "")
        self._storage.failed.emit(error)

    def _fill(self, content: str) -> None:
        self._restoring = True
        self.composer.set_content(content)
        self._restoring = False

    def _save_draft(self) -> None:
        self._storage.save_draft(self._chat, self._history.to_keep(self.composer.content))

    @Slot()
    def _on_changed(self) -> None:
        if not self._restoring and self._reading is None:  # else it would take the place of what is read
            self._save_draft()

    # Sending and waiting

    @Slot(str)
    def _send(self, message: str) -> None:
        self._gate.pass_on(message, self._deliver)

    def _deliver(self, message: str) -> None:
        if self._session.busy or self._session.model is None:
            return
        self.composer.set_content(self._history.leave())
        self._removed.clear()
        self._session.send(message)

    @Slot(str)
    def _let_wait(self, message: str) -> None:
        if self.waiting.of(self._chat):
            self.composer.refuse(tr("One message waits already. Edit or remove that one first."))
            return
        if not self._gate.fits(message):
            return
        self.waiting.put(self._chat, message)
        self.composer.show_waiting(message)
        self.composer.set_content(self._history.leave())

    @Slot()
    def _edit_waiting(self) -> None:
        self._take_back(self._chat)
        self.composer.edit.setFocus()

    @Slot()
    def _remove_waiting(self) -> None:
        self._removed.append(self.waiting.remove(self._chat))
        self.composer.show_waiting("")
        self.composer.edit.setFocus()

    def _take_back(self, chat: int | None) -> None:
        """What waits in a chat comes back into its composer, in front of what is written there."""
        if chat != self._chat:
            self.waiting.release(chat)  # it is on the disk, and comes back when the chat is opened
            return
        message = self.waiting.of(chat)
        if message:
            self._show_again(message)
            self.waiting.remove(chat)

    def _show_again(self, message: str) -> None:
        self.composer.show_waiting("")
        written = self._history.to_keep(self.composer.content)
        self._history.leave()
        self._fill(merged(message, written))
        self._save_draft()
        self._storage.flush()  # first on the disk here, then gone there

    @Slot(object, str)
    def _give_back(self, chat: int | None, message: str) -> None:
        """A message could not be saved in its chat."""
        if chat == self._chat:
            self._show_again(message)
            self._storage.run(ChatStore.save_next, chat, "")
        else:
            self._storage.run(ChatStore.save_next, chat, message)

    @Slot(object)
    def _on_finished(self, row: MessageRow) -> None:
        self._ended = row

    @Slot(bool)
    def _on_busy(self, busy: bool) -> None:
        self.refresh()
        if not busy or self._session.answering_id is not None:
            self._on_its_way = None
        if not busy:
            QTimer.singleShot(0, self, self._follow)  # when all have heard of the end

    @Slot()
    def _follow(self) -> None:
        """An answer has ended: send what waits, or give it back."""
        if self._session.busy:
            return
        ended, self._ended = self._ended, None
        chat = self._chat if ended is None else ended.conversation_id
        if ended is None or not ended_well(ended):
            self._take_back(chat)
        while self.waiting and self._session.model is None:
            self._take_back(self.waiting.first(chat))
        if self.waiting:
            place = self.waiting.first(chat)
            message, self._on_its_way = self.waiting.release(place), (place,)
            if place == self._chat:
                self.composer.show_waiting("")
            self._session.send_waiting(place, message)

    # Messages sent before

    def _call_back(self, step: int) -> bool:
        sent = [row.content for row in self._session.messages if row.role == "user"]
        found = self._history.step([*sent, *self._removed], self.composer.content, step)
        if found is None:
            return False
        self.composer.set_content(found)
        return True


def _add_to_draft(store: ChatStore, chat: int | None, written: str) -> None:
    store.save_draft(chat, merged(store.draft(chat), written))
