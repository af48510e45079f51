"""The list of chats, with the keys and the menu of its entries."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QMenu, QWidget

from app.chat.list_delegate import ChatDelegate
from app.chat.list_model import ChatListModel
from app.i18n import tr
from app.storage import Conversation
from app.theme import theme


class ChatList(QListView):
    """The list itself: Enter opens, F2 renames, Delete deletes, the menu key shows the rest."""

    open_requested = Signal(int)
    delete_requested = Signal(int)
    duplicate_requested = Signal(int)
    pin_requested = Signal(int, bool)
    archive_requested = Signal(int, bool)
    edit_ended = Signal()  # a title is no longer being edited

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)
        self.setItemDelegate(ChatDelegate(self))
        self.itemDelegate().closeEditor.connect(lambda *_: self.edit_ended.emit())
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(tr("Chats"))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.clicked.connect(self._open)
        self.activated.connect(self._open)

    @property
    def editing(self) -> bool:
        """Whether a title is being edited: another list would take the field away."""
        return self.state() is QAbstractItemView.State.EditingState

    def current_id(self) -> int | None:
        """The chat that the cursor is on."""
        index = self.currentIndex()
        return index.data(ChatListModel.ID) if index.isValid() else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete deletes; the rest is Qt's."""
        current = self.current_id()
        if event.key() == Qt.Key.Key_Delete and current is not None:
            self.delete_requested.emit(current)
            return
        super().keyPressEvent(event)

    def rename_current(self) -> None:
        """Edit the title of the chat that the cursor is on."""
        if self.currentIndex().isValid():
            self.edit(self.currentIndex())

    def _open(self, index: QModelIndex) -> None:
        self.open_requested.emit(index.data(ChatListModel.ID))

    def _show_menu(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if index.isValid():
            menu = self.menu_for(index)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.viewport().mapToGlobal(place))

    def menu_for(self, index: QModelIndex) -> QMenu:
        """What can be done with a chat of the list."""
        chat: Conversation = index.data(ChatListModel.CHAT)
        pin = tr("Unpin") if chat.pinned else tr("Pin to the top")
        archive = tr("Bring back from the archive") if chat.archived else tr("Archive")
        place = QPersistentModelIndex(index)
        menu = QMenu(self)
        menu.setAccessibleName(tr("Chat “{title}”", title=chat.title))
        entries: list[tuple[str, str, Callable[[], object]]] = [
            ("rename", tr("Rename"), lambda: self.edit(self.model().index(place.row(), 0))),
            ("pin", pin, lambda: self.pin_requested.emit(chat.id, not chat.pinned)),
            ("archive", archive, lambda: self.archive_requested.emit(chat.id, not chat.archived)),
            ("duplicate", tr("Duplicate"), lambda: self.duplicate_requested.emit(chat.id)),
            ("delete", tr("Delete"), lambda: self.delete_requested.emit(chat.id)),
        ]
        for icon, text, run in entries:
            action = menu.addAction(text)
            action.triggered.connect(run)
            theme().set_icon(action, icon)
        return menu
