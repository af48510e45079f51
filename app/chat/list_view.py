"""The side bar: new chat, search, the list of chats, and the offer to undo a deletion."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.chat.list_model import ChatListModel, Index
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.elided import ElidedText

UNDO_MS = 12_000
SEARCH_DELAY_MS = 150


class ChatDelegate(QStyledItemDelegate):
    """A title in one line and the last text in a second, quiet one."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Two lines and some air."""
        return QSize(80, option.fontMetrics.height() * 2 + 18)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw ground, focus, title and preview in the theme's colours."""
        colors = theme().colors
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = selected and bool(option.state & QStyle.StateFlag.State_HasFocus)
        ground = option.rect.adjusted(2, 1, -2, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if selected or hovered:
            painter.setBrush(colors.selected if selected else colors.hover)
            painter.drawRoundedRect(ground, 8, 8)
        if focused:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(colors.accent)
            painter.drawRoundedRect(ground.adjusted(1, 1, -1, -1), 7, 7)
        text = ground.adjusted(11, 7, -11, -7)
        title = QFont(option.font)
        title.setWeight(QFont.Weight.Medium)
        painter.setFont(title)
        painter.setPen(colors.text)
        self._line(painter, text, 0, str(index.data()))
        small = QFont(option.font)
        small.setPointSizeF(small.pointSizeF() * 0.9)
        painter.setFont(small)
        painter.setPen(colors.text if selected else colors.muted)
        self._line(painter, text, option.fontMetrics.height() + 3, str(index.data(ChatListModel.PREVIEW)))
        painter.restore()

    @staticmethod
    def _line(painter: QPainter, area: QRect, top: int, text: str) -> None:
        metrics = painter.fontMetrics()
        line = QRect(area.left(), area.top() + top, area.width(), metrics.height())
        shown = metrics.elidedText(text.replace("\n", " "), Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading), shown)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """The editor lies over the whole entry."""
        height = editor.sizeHint().height()
        rect = option.rect.adjusted(5, 0, -5, 0)
        editor.setGeometry(rect.left(), rect.center().y() - height // 2, rect.width(), height)


class ChatList(QListView):
    """The list itself: Enter opens, F2 renames, Delete deletes."""

    open_requested = Signal(int)
    delete_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)
        self.setItemDelegate(ChatDelegate(self))
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(tr("Chats"))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._show_menu)
        self.clicked.connect(self._open)
        self.activated.connect(self._open)

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
        if not index.isValid():
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        rename = QAction(tr("Rename"), menu)
        rename.triggered.connect(lambda: self.edit(index))
        delete = QAction(tr("Delete"), menu)
        delete.triggered.connect(lambda: self.delete_requested.emit(index.data(ChatListModel.ID)))
        theme().set_icon(rename, "rename")
        theme().set_icon(delete, "delete")
        menu.addActions([rename, delete])
        menu.popup(self.viewport().mapToGlobal(place))


class UndoBar(QFrame):
    """Offers for a while to bring back what was deleted."""

    undone = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, card=True)
        self._id = 0
        self._label = ElidedText()
        self.button = QPushButton(tr("Undo"))
        self.button.clicked.connect(self._undo)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(UNDO_MS)
        self._timer.timeout.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.addWidget(self._label, 1)
        row.addWidget(self.button)
        self.hide()

    def offer(self, conversation_id: int, text: str) -> None:
        """Offer to bring a chat back; replaces an earlier offer."""
        self._id = conversation_id
        self._label.setText(text)
        self.setAccessibleName(text)
        self.show()
        self._timer.start()

    def _undo(self) -> None:
        self.hide()
        self._timer.stop()
        self.undone.emit(self._id)


class SideBar(QWidget):
    """Everything on the left of the window."""

    new_chat = Signal()
    search_changed = Signal(str)

    def __init__(self, model: ChatListModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, surface=True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.model = model
        self.new_button = QPushButton(tr("New chat"))
        self.new_button.setToolTip(tr("Begin a new chat (Ctrl+N)"))
        theme().set_icon(self.new_button, "add")
        self.new_button.clicked.connect(self.new_chat)
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search chats"))
        self.search.setAccessibleName(tr("Search chats"))
        self.search.setClearButtonEnabled(True)
        icon = QAction(self.search)
        theme().set_icon(icon, "search", "muted")
        self.search.addAction(icon, QLineEdit.ActionPosition.LeadingPosition)
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(lambda: self.search_changed.emit(self.search.text()))
        self.search.textChanged.connect(lambda _: self._search_timer.start())
        self.list = ChatList()
        self.list.setModel(model)
        self.empty = QLabel()
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        mark(self.empty, muted=True)
        self.undo = UndoBar()
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(8)
        for widget in (self.new_button, self.search, self.empty):
            column.addWidget(widget)
        column.addWidget(self.list, 1)
        column.addWidget(self.undo)
        model.modelReset.connect(self._show_emptiness)
        self._show_emptiness()

    def select(self, conversation_id: int | None) -> None:
        """Mark the chat that is shown, without opening it again."""
        row = self.model.row_of(conversation_id)
        selection = self.list.selectionModel()
        if row < 0:
            selection.clearSelection()
            selection.clearCurrentIndex()
            return
        index = self.model.index(row)
        selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.list.scrollTo(index)

    def _show_emptiness(self) -> None:
        empty = self.model.rowCount() == 0
        searching = bool(self.search.text().strip())
        self.empty.setText(tr("No chat contains this text.") if searching else tr("Your chats appear here."))
        self.empty.setVisible(empty)
