"""The list of chats, with the keys and the menu of its entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    Qt,
    Signal,
)
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QAbstractItemDelegate, QAbstractItemView, QListView, QMenu, QWidget

from app.chat.list_delegate import ChatDelegate
from app.chat.list_menu import Actions, make_menu
from app.chat.list_model import ChatListModel
from app.i18n import tr
from app.storage import Conversation

_CHOOSING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


class ChatList(QListView):
    """The list itself: Enter opens, F2 renames, Delete deletes, the menu key shows the rest.

    Shift and Ctrl choose several chats, as everywhere.
    """

    open_requested = Signal(int)
    duplicate_requested = Signal(int)
    delete_requested = Signal(object)  # the ids of one or several chats, a tuple
    export_requested = Signal(object)
    pin_requested = Signal(object, bool)
    archive_requested = Signal(object, bool)
    edit_ended = Signal()  # a title is no longer being edited

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setItemDelegate(ChatDelegate(self))
        self.itemDelegate().closeEditor.connect(lambda *_: self.edit_ended.emit())
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(tr("Chats"))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.clicked.connect(self._on_clicked)
        self.activated.connect(self._open)

    @property
    def editing(self) -> bool:
        """Whether a title is being edited: another list would take the field away."""
        return self.state() is QAbstractItemView.State.EditingState

    def current_id(self) -> int | None:
        """The chat that the cursor is on."""
        index = self.currentIndex()
        return index.data(ChatListModel.ID) if index.isValid() else None

    def chosen(self) -> list[Conversation]:
        """The chats that are selected, from top to bottom."""
        rows = sorted(self.selectionModel().selectedIndexes(), key=lambda index: index.row())
        return [index.data(ChatListModel.CHAT) for index in rows]

    def choose(self, ids: Collection[int]) -> None:
        """Select chats again, after the list has changed."""
        selection, model = QItemSelection(), self.model()
        for row in range(model.rowCount()):
            index = model.index(row, 0)
            if index.data(ChatListModel.ID) in ids:
                selection.select(index, index)
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete deletes what is chosen; the rest is Qt's."""
        chosen = self.chosen()
        if event.key() == Qt.Key.Key_Delete and chosen:
            self.delete_requested.emit(_ids(chosen))
            return
        super().keyPressEvent(event)

    def _on_clicked(self, index: QModelIndex) -> None:
        if not QGuiApplication.keyboardModifiers() & _CHOOSING:
            self._open(index)

    def rename_current(self) -> None:
        """Edit the title of the chat that the cursor is on."""
        self._rename(self.currentIndex())

    def end_edit(self) -> None:
        """Take over what was typed, if a title is being edited."""
        editor = self.indexWidget(self.currentIndex())
        if self.editing and editor is not None:
            self.commitData(editor)
            self.itemDelegate().closeEditor.emit(editor, QAbstractItemDelegate.EndEditHint.NoHint)

    def _rename(self, index: QModelIndex) -> None:
        if index.isValid() and not self.editing:
            self.edit(index)

    def _open(self, index: QModelIndex) -> None:
        self.open_requested.emit(index.data(ChatListModel.ID))

    def _show_menu(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if index.isValid():
            menu = self.menu_for(index)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.viewport().mapToGlobal(place))

    def menu_for(self, index: QModelIndex) -> QMenu:
        """What can be done with a chat of the list, or with all that are chosen if it is one of them."""
        chosen = self.chosen()
        chat: Conversation = index.data(ChatListModel.CHAT)
        if len(chosen) < 2 or chat.id not in _ids(chosen):
            chosen = [chat]
        ids, place = _ids(chosen), QPersistentModelIndex(index)
        pinned, archived = all(chat.pinned for chat in chosen), all(chat.archived for chat in chosen)
        actions: Actions = {
            "rename": lambda: self._rename(self.model().index(place.row(), 0)),
            "pin": lambda: self.pin_requested.emit(ids, not pinned),
            "archive": lambda: self.archive_requested.emit(ids, not archived),
            "duplicate": lambda: self.duplicate_requested.emit(chat.id),
            "export": lambda: self.export_requested.emit(ids),
            "delete": lambda: self.delete_requested.emit(ids),
        }
        return make_menu(chosen, actions, self)


def _ids(chats: Sequence[Conversation]) -> tuple[int, ...]:
    return tuple(chat.id for chat in chats)
