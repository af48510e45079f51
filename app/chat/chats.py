"""Keeps the side bar in step with the store: list, search, open, and what is done with a whole chat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.list_model import ChatListModel
from app.chat.session import ChatSession
from app.chat.sidebar import SideBar
from app.i18n import tr
from app.storage import ChatStore, Conversation, Summary
from app.storage.listing import MOST_FOUND
from app.storage.search_query import parse
from app.storage.thread import StorageThread


@dataclass(frozen=True)
class _View:
    """What the list is to show."""

    sought: str = ""
    archive: bool = False


class ChatsController(QObject):
    """Owns nothing but the order of things: what is asked of the store, and what follows."""

    place_found = Signal(int, object)  # the message to show in the opened chat, the terms that were sought

    def __init__(
        self, sidebar: SideBar, session: ChatSession, storage: StorageThread, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._sidebar, self._session, self._storage = sidebar, session, storage
        self._model: ChatListModel = sidebar.model
        self._view = _View()
        self._outdated = False  # the list has changed while a title was being edited in it
        self._place: tuple[int, int] | None = None  # chat that is being opened, message to show in it
        sidebar.new_chat.connect(session.new_chat)
        sidebar.search_changed.connect(self._on_search)
        sidebar.archive_toggled.connect(self._on_archive_shown)
        sidebar.list.open_requested.connect(self._on_open)
        sidebar.list.delete_requested.connect(self.delete)
        sidebar.list.duplicate_requested.connect(self.duplicate)
        sidebar.list.pin_requested.connect(self.pin)
        sidebar.list.archive_requested.connect(self.archive)
        sidebar.list.edit_ended.connect(self._on_edit_ended)
        self._model.rename_requested.connect(session.rename)
        session.list_changed.connect(self.refresh)
        session.opened.connect(self._on_opened)
        session.busy_changed.connect(lambda _: self._show_answering())

    @Slot()
    def refresh(self) -> None:
        """Read the list again."""
        view = self._view

        def read(store: ChatStore) -> tuple[list[Summary], int]:
            chats = store.conversations(view.sought or None, archived=view.archive)
            return chats, store.archived_count()

        def show(found: tuple[list[Summary], int]) -> None:
            if self._sidebar.list.editing:
                self._outdated = True
            elif view == self._view:  # the user has typed on meanwhile otherwise
                chats, archived = found
                self._model.set_chats(chats, parse(view.sought).terms)
                self._sidebar.show_state(view.sought, archived=archived, limit=MOST_FOUND)
                self._select()

        self._storage.run(read).then(show)

    @Slot()
    def _on_edit_ended(self) -> None:
        if self._outdated:
            self._outdated = False
            self.refresh()

    @Slot(int)
    def delete(self, conversation_id: int) -> None:
        """Delete a chat; the offer to undo it appears."""
        if self._session.answering_id == conversation_id:
            self._session.stop()
        self._storage.run(ChatStore.delete, conversation_id).then(self._on_deleted)

    @Slot(int)
    def duplicate(self, conversation_id: int) -> None:
        """Copy a chat and show the copy."""

        def show(copy: Conversation) -> None:
            self.refresh()
            self._session.open(copy.id)

        self._storage.flush()  # the copy has what an answer under way has so far
        self._storage.run(ChatStore.duplicate, conversation_id).then(show)

    @Slot(int, bool)
    def pin(self, conversation_id: int, pinned: bool) -> None:
        """Keep a chat at the top of the list, or no longer."""
        self._storage.run(ChatStore.pin, conversation_id, pinned).then(self._on_changed)

    @Slot(int, bool)
    def archive(self, conversation_id: int, archived: bool) -> None:
        """Put a chat away from the list, or back onto it; the offer to undo it appears."""

        def offer(chat: Conversation) -> None:
            done = tr("Archived “{title}”") if archived else tr("“{title}” is in the list again")
            take_back = partial(self.archive_quietly, chat.id, not archived)
            self._sidebar.undo.offer(done.format(title=chat.title), take_back)
            self._on_changed(chat)

        self._storage.run(ChatStore.archive, conversation_id, archived).then(offer)

    def archive_quietly(self, conversation_id: int, archived: bool) -> None:
        """The same without an offer: this is the undo."""
        self._storage.run(ChatStore.archive, conversation_id, archived).then(self._on_changed)

    def _on_changed(self, chat: Conversation) -> None:
        self._session.adopt(chat)
        self.refresh()

    def _on_deleted(self, chat: Conversation) -> None:
        shown = self._session.conversation
        if shown is not None and shown.id == chat.id:
            self._session.new_chat()
        self._sidebar.undo.offer(tr("Deleted “{title}”", title=chat.title), lambda: self._undelete(chat.id))
        self.refresh()

    def _undelete(self, conversation_id: int) -> None:
        def reopen(chat: Conversation) -> None:
            self.refresh()
            self._session.open(chat.id)

        self._storage.run(ChatStore.undelete, conversation_id).then(reopen)

    @Slot(str)
    def _on_search(self, text: str) -> None:
        self._view = _View(text.strip(), self._view.archive)
        self.refresh()

    @Slot(bool)
    def _on_archive_shown(self, shown: bool) -> None:
        self._view = _View(self._view.sought, shown)
        self.refresh()

    @Slot(int)
    def _on_open(self, conversation_id: int) -> None:
        row = self._model.row_of(conversation_id)
        place = self._model.summary(row).place if row >= 0 else None
        self._place = None if place is None else (conversation_id, place)
        shown = self._session.conversation
        if shown is None or shown.id != conversation_id:
            self._session.open(conversation_id)
        else:
            self._show_place(shown)

    @Slot(object, object)
    def _on_opened(self, chat: Conversation | None, _rows: object) -> None:
        self._select()
        self._show_place(chat)

    def _show_place(self, chat: Conversation | None) -> None:
        if self._place is None or chat is None or self._place[0] != chat.id:
            return
        (_, message), self._place = self._place, None
        terms = parse(self._view.sought).terms
        QTimer.singleShot(0, self, lambda: self.place_found.emit(message, terms))  # once it is laid out

    def _select(self) -> None:
        if self._sidebar.list.editing:
            return
        shown = self._session.conversation
        self._sidebar.select(shown.id if shown else None)

    def _show_answering(self) -> None:
        self._model.set_answering(self._session.answering_id)
