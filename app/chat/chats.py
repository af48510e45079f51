"""Keeps the side bar in step with the store: list, search, open, and what is done with a whole chat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.list_model import ChatListModel
from app.chat.session import ChatSession
from app.chat.sidebar import SideBar
from app.i18n import tr, tr_count
from app.storage import ChatStore, Conversation, StorageError, Summary
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
        self._outdated = False  # the list or the chat that is shown has changed during an edit in it
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
                listed = {chat.conversation.id for chat in chats}
                chosen = listed & {chat.id for chat in self._sidebar.list.chosen()}
                self._model.set_chats(chats, parse(view.sought).terms)
                self._sidebar.show_state(view.sought, archived=archived, limit=MOST_FOUND)
                if len(chosen) > 1:
                    self._sidebar.list.choose(chosen)
                else:
                    self._select()

        self._storage.run(read).then(show)

    @Slot()
    def _on_edit_ended(self) -> None:
        if self._outdated:
            self._outdated = False
            self.refresh()

    @Slot(object)
    def delete(self, chats: tuple[int, ...]) -> None:
        """Delete chats; the offer to undo it appears."""
        if self._session.answering_id in chats:
            self._session.stop()
        self._change(ChatStore.delete, chats, self._on_deleted)

    @Slot(int)
    def duplicate(self, conversation_id: int) -> None:
        """Copy a chat and show the copy."""

        def show(copy: Conversation) -> None:
            self.refresh()
            self._session.open(copy.id)

        self._storage.flush()  # the copy has what an answer under way has so far
        self._storage.run(ChatStore.duplicate, conversation_id).then(show)

    @Slot(object, bool)
    def pin(self, chats: tuple[int, ...], pinned: bool) -> None:
        """Keep chats at the top of the list, or no longer."""
        self._change(partial(_pin, pinned=pinned), chats, self._on_changed)

    @Slot(object, bool)
    def archive(self, chats: tuple[int, ...], archived: bool) -> None:
        """Put chats away from the list, or back onto it; the offer to undo it appears."""

        def offer(changed: list[Conversation]) -> None:
            title, count = changed[0].title, len(changed)
            if archived:
                one = tr("Archived “{title}”", title=title)
                several = tr_count("Archived {count} chat", "Archived {count} chats", count)
            else:
                one = tr("“{title}” is in the list again", title=title)
                several = tr_count(
                    "{count} chat is in the list again", "{count} chats are in the list again", count
                )
            undo = partial(self.archive_quietly, chats, not archived)
            self._sidebar.undo.offer(one if count == 1 else several, undo)
            self._on_changed(changed)

        self._change(partial(_archive, archived=archived), chats, offer)

    def archive_quietly(self, chats: tuple[int, ...], archived: bool) -> None:
        """The same without an offer: this is the undo."""
        self._change(partial(_archive, archived=archived), chats, self._on_changed)

    def undelete(self, chats: tuple[int, ...]) -> None:
        """Bring deleted chats back; one alone is shown."""

        def reopen(back: list[Conversation]) -> None:
            self.refresh()
            if len(back) == 1:
                self._session.open(back[0].id)

        self._change(ChatStore.undelete, chats, reopen)

    def _change(
        self,
        operation: Callable[[ChatStore, int], Conversation],
        chats: tuple[int, ...],
        done: Callable[[list[Conversation]], None],
    ) -> None:
        """Do the same with each of the chats; where that fails, the list shows how far it got."""

        def work(store: ChatStore) -> list[Conversation]:
            return [operation(store, chat) for chat in chats]

        def failed(error: StorageError) -> None:
            self.refresh()
            self._storage.failed.emit(error)

        self._storage.run(work).then(done, failed)

    def _on_changed(self, chats: list[Conversation]) -> None:
        for chat in chats:
            self._session.adopt(chat)
        self.refresh()

    def _on_deleted(self, chats: list[Conversation]) -> None:
        shown = self._session.conversation
        if shown is not None and shown.id in [chat.id for chat in chats]:
            self._session.new_chat()
        one = tr("Deleted “{title}”", title=chats[0].title)
        several = tr_count("Deleted {count} chat", "Deleted {count} chats", len(chats))
        undo = partial(self.undelete, tuple(chat.id for chat in chats))
        self._sidebar.undo.offer(one if len(chats) == 1 else several, undo)
        self.refresh()

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
            self._outdated = True
            return
        shown = self._session.conversation
        self._sidebar.select(shown.id if shown else None)

    def _show_answering(self) -> None:
        self._model.set_answering(self._session.answering_id)


def _pin(store: ChatStore, chat: int, *, pinned: bool) -> Conversation:
    return store.pin(chat, pinned)


def _archive(store: ChatStore, chat: int, *, archived: bool) -> Conversation:
    return store.archive(chat, archived)
