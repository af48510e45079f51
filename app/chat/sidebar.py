"""The side bar: new chat, search, the list of chats or the archive, and the offer to undo."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QItemSelectionModel, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.chat.list_model import ChatListModel
from app.chat.list_view import ChatList
from app.chat.undo_bar import UndoBar
from app.i18n import tr, tr_count
from app.theme import mark, theme
from app.widgets.screen_share import share_of_screen

_LEAST_WIDTH = 180  # pixels
SEARCH_DELAY_MS = 60  # so that fast typing asks once, and a slow typist sees no delay


class SideBar(QWidget):
    """Everything on the left of the window."""

    new_chat = Signal()
    search_changed = Signal(str)
    archive_toggled = Signal(bool)  # whether the archive is to be shown

    def __init__(self, model: ChatListModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, surface=True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.model = model
        self._sought = ""  # what the list shows the results of
        self._rename_when_listed: int | None = None
        self._open_when_found = False  # Enter was pressed before the results were there
        self.new_button = QPushButton(tr("New chat"))
        theme().set_icon(self.new_button, "add")
        self.new_button.clicked.connect(self.new_chat)
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search chats"))
        self.search.setAccessibleName(tr("Search chats"))
        self.search.setAccessibleDescription(tr("Finds words in titles and messages. “Quote” for phrases."))
        self.search.setToolTip(self.search.accessibleDescription())
        self.search.setClearButtonEnabled(True)
        icon = QAction(self.search)
        theme().set_icon(icon, "search", "muted")
        self.search.addAction(icon, QLineEdit.ActionPosition.LeadingPosition)
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(lambda: self.search_changed.emit(self.search.text()))
        self.search.textChanged.connect(self._on_typed)
        self.search.installEventFilter(self)
        self.list = ChatList()
        self.list.setModel(model)
        self.remark = QLabel()  # how much was found, or why the list is empty
        self.remark.setWordWrap(True)
        self.remark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        mark(self.remark, muted=True)
        self.archive_button = QPushButton(tr("Archived chats"))
        self.archive_button.setCheckable(True)
        theme().set_icon(self.archive_button, "archive", "muted")
        self.archive_button.toggled.connect(self._on_archive)
        self.archive_button.hide()
        self.undo = UndoBar()
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(8)
        for widget in (self.new_button, self.search, self.remark):
            column.addWidget(widget)
        column.addWidget(self.list, 1)
        column.addWidget(self.archive_button)
        column.addWidget(self.undo)
        self.show_state("", archived=0, limit=None)

    def minimumSizeHint(self) -> QSize:
        """As wide as its buttons are in the present font, never a mere strip, nor most of the screen."""
        hint = super().minimumSizeHint().expandedTo(QSize(_LEAST_WIDTH, 0))
        return QSize(share_of_screen(self, hint.width(), 0.41), hint.height())

    def show_state(self, sought: str, *, archived: int, limit: int | None) -> None:
        """The list now shows the results for `sought`; there are `archived` chats in the archive.

        A search that found `limit` chats may have left out some.
        """
        self._sought = sought
        count = self.model.rowCount()
        self.archive_button.setText(
            tr("Back to the chats") if self.archive_button.isChecked() else tr("Archive ({n})", n=archived)
        )
        self.archive_button.setVisible(bool(archived) or self.archive_button.isChecked())
        if sought:
            text = tr_count("{count} chat found", "{count} chats found", count)
            if not count:
                text = tr("No chat contains this text.")
            elif count == limit:
                text = tr_count(
                    "The latest {count} chat with this text", "The latest {count} chats with this text", count
                )
        elif self.archive_button.isChecked():
            text = tr("Archived chats") if count else tr("The archive is empty.")
        else:
            text = "" if count else tr("Your chats appear here.")
        self.remark.setText(text)
        self.remark.setVisible(bool(text))
        self.list.setAccessibleDescription(text)
        if self._open_when_found:
            self._open_first()
        if self._rename_when_listed is not None and self.model.row_of(self._rename_when_listed) >= 0:
            self.rename(self._rename_when_listed, archived=self.archive_button.isChecked())

    def rename(self, conversation_id: int, *, archived: bool) -> None:
        """Edit a chat's title in the list, which first shows the chat if it does not."""
        if self.model.row_of(conversation_id) >= 0:
            self._rename_when_listed = None
            self.select(conversation_id)
            self.list.rename_current()
            return
        self._rename_when_listed = conversation_id
        self.search.clear()
        self.archive_button.setChecked(archived)

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

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """From the search field, Down goes into the list, Enter opens the first result, Escape clears."""
        if watched is not self.search or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        key = event.key()
        if event.type() is QEvent.Type.ShortcutOverride and key == Qt.Key.Key_Escape and self.search.text():
            event.accept()  # it stops an answer elsewhere
            return True
        if event.type() is not QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if key == Qt.Key.Key_Escape and self.search.text():
            self.search.clear()
            return True
        if key == Qt.Key.Key_Down and self.model.rowCount():
            self._enter_list()
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open_first()
            return True
        return super().eventFilter(watched, event)

    def _enter_list(self) -> None:
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)
        if not self.list.currentIndex().isValid():
            self.list.setCurrentIndex(self.model.index(0))

    @Slot()
    def _on_typed(self) -> None:
        self._open_when_found = False
        self._search_timer.start()

    def _open_first(self) -> None:
        """Open the first result, now or when the results for what is typed are there."""
        typed = self.search.text().strip()
        self._open_when_found = bool(typed) and typed != self._sought
        if typed and not self._open_when_found and self.model.rowCount():
            self._enter_list()
            self.list.setCurrentIndex(self.model.index(0))
            self.list.open_requested.emit(self.model.ids[0])

    @Slot(bool)
    def _on_archive(self, shown: bool) -> None:
        self.archive_toggled.emit(shown)
