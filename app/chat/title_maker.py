"""Has the model name new chats while it has nothing else to do. No widgets."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.session import ChatSession
from app.chat.titles import PARAMS, clean_title, is_about, is_wanted, request, whole_lines
from app.settings import SettingsStore, registry
from app.storage import ChatStore, Conversation, MessageRow, MessageState
from app.storage.thread import StorageThread
from app.worker import EngineWorker
from engine.events import FinishReason
from engine.params import Message

_WHOLE = {FinishReason.EOS, FinishReason.STOP_STRING, FinishReason.LENGTH}


class TitleMaker(QObject):
    """Asks after an answer; a title that the user has given, or gives meanwhile, is never replaced."""

    renamed = Signal(object)  # the Conversation with its new title

    def __init__(
        self,
        session: ChatSession,
        storage: StorageThread,
        worker: EngineWorker,
        settings: SettingsStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._storage, self._worker, self._settings = session, storage, worker, settings
        self._asked: Conversation | None = None  # as it was when the model was asked
        self._said = ""  # in it until then
        session.message_finished.connect(self._on_answered)
        session.busy_changed.connect(self._on_busy)
        worker.aside_finished.connect(self._on_written)

    @Slot(object)
    def _on_answered(self, row: MessageRow) -> None:
        if row.state is not MessageState.COMPLETE or not self._settings.get(registry.SUGGEST_TITLES):
            return

        def read(store: ChatStore) -> tuple[Conversation, list[Message]] | None:
            chat, rows = store.conversation(row.conversation_id), store.messages(row.conversation_id)
            return (chat, request(chat, rows)) if is_wanted(chat, rows) else None

        self._storage.run(read).then(self._ask)

    def _ask(self, found: tuple[Conversation, list[Message]] | None) -> None:
        if found is None or self._session.busy:
            return
        self._asked, messages = found
        self._said = " ".join(message.content for message in messages[:-1] if message.role != "system")
        self._worker.generate_aside(self._asked.id, messages, PARAMS)

    @Slot(bool)
    def _on_busy(self, busy: bool) -> None:
        if busy:
            self._asked = None
            self._worker.cancel_asides()

    @Slot(int, str, object)
    def _on_written(self, conversation_id: int, text: str, reason: FinishReason) -> None:
        asked, self._asked = self._asked, None
        if asked is None or asked.id != conversation_id or reason not in _WHOLE:
            return
        title = clean_title(whole_lines(text, cut_off=reason is FinishReason.LENGTH))
        if title is not None and is_about(title, self._said):
            self._storage.run(ChatStore.rename_unless_renamed, asked, title).then(self._tell)

    def _tell(self, conversation: Conversation | None) -> None:
        if conversation is not None:
            self._session.adopt(conversation)
            self.renamed.emit(conversation)
