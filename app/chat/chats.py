"""Keeps the side bar in step with the store: list, search, open, rename, delete and undo."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.chat.list_model import ChatListModel
from app.chat.list_view import SideBar
from app.chat.session import ChatSession
from app.i18n import tr
from app.storage import ChatStore, Conversation, Summary
from app.storage.thread import StorageThread


class ChatsController(QObject):
    """Owns nothing but the order of things: what is asked of the store, and what follows."""

    def __init__(
        self, sidebar: SideBar, session: ChatSession, storage: StorageThread, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._sidebar, self._session, self._storage = sidebar, session, storage
        self._model: ChatListModel = sidebar.model
        self._search = ""
        sidebar.new_chat.connect(session.new_chat)
        sidebar.search_changed.connect(self._on_search)
        sidebar.list.open_requested.connect(self._on_open)
        sidebar.list.delete_requested.connect(self.delete)
        sidebar.undo.undone.connect(self._undelete)
        self._model.rename_requested.connect(session.rename)
        session.list_changed.connect(self.refresh)
        session.opened.connect(lambda *_: self._select())
        session.busy_changed.connect(lambda _: self._show_answering())

    @Slot()
    def refresh(self) -> None:
        """Read the list again."""
        sought = self._search

        def show(chats: list[Summary]) -> None:
            if sought == self._search:
                self._model.set_chats(chats)
                self._select()

        self._storage.run(ChatStore.conversations, sought or None).then(show)

    @Slot(int)
    def delete(self, conversation_id: int) -> None:
        """Delete a chat; the offer to undo it appears."""
        if self._session.answering_id == conversation_id:
            self._session.stop()
        self._storage.run(ChatStore.delete, conversation_id).then(self._on_deleted)

    def _on_deleted(self, chat: Conversation) -> None:
        shown = self._session.conversation
        if shown is not None and shown.id == chat.id:
            self._session.new_chat()
        self._sidebar.undo.offer(chat.id, tr("Deleted “{title}”", title=chat.title))
        self.refresh()

    @Slot(int)
    def _undelete(self, conversation_id: int) -> None:
        def reopen(chat: Conversation) -> None:
            self.refresh()
            self._session.open(chat.id)

        self._storage.run(ChatStore.undelete, conversation_id).then(reopen)

    @Slot(str)
    def _on_search(self, text: str) -> None:
        self._search = text.strip()
        self.refresh()

    @Slot(int)
    def _on_open(self, conversation_id: int) -> None:
        shown = self._session.conversation
        if shown is None or shown.id != conversation_id:
            self._session.open(conversation_id)

    def _select(self) -> None:
        shown = self._session.conversation
        self._sidebar.select(shown.id if shown else None)

    def _show_answering(self) -> None:
        self._model.set_answering(self._session.answering_id)
