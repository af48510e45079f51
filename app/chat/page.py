"""The middle of the window: the chat's title, its messages or a welcome, and the composer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.chat.boundary import left_out
from app.chat.details import DetailsDialog
from app.chat.model_strip import ModelStrip
from app.chat.notice_area import NoticeArea
from app.chat.notice_bar import NoticeBar
from app.chat.notices import Action
from app.chat.parameters_button import ParametersButton
from app.chat.session import ChatSession
from app.chat.turns import TurnsController
from app.chat.view import COLUMN_CHARACTERS, SIDE, ConversationView
from app.chat.welcome import Welcome
from app.composer.composer import Composer
from app.composer.control import ComposerControl
from app.i18n import tr
from app.storage import Conversation, MessageRow
from app.storage.thread import StorageThread
from app.theme import heading
from app.widgets.buttons import icon_button
from app.widgets.elided import ElidedText
from app.widgets.screen_share import share_of_screen
from engine.status import EngineStatus

_ROOMY_CHARACTERS = 72  # width from which there is room for the preset's name beside the title
_LEAST_WIDTH = 360  # pixels
_LINES_BESIDE = 31  # about how wide side bar and panel are at least, in heights of a line


class ChatPage(QWidget):
    """Shows a `ChatSession` and passes on what the user asks for."""

    export_requested = Signal()
    sidebar_toggled = Signal()
    panel_toggled = Signal()

    def __init__(self, session: ChatSession, storage: StorageThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._storage = session, storage
        self.turns = TurnsController(session, storage, self)
        self.title = ElidedText()
        self.view = ConversationView()
        self.welcome = Welcome()
        self.stack = QStackedWidget()
        self.stack.addWidget(self.welcome)
        self.stack.addWidget(self.view)
        self.strip = ModelStrip(self)  # without a parent it would be a window for a moment
        self.composer = Composer()
        self.writing = ComposerControl(self.composer, session, storage, self.strip, self)
        self.notice = NoticeBar(dismissable=True)  # about the saved chats as a whole
        self.model_notice = NoticeBar(dismissable=True)  # about the loaded model
        self.run_notice = NoticeBar(dismissable=True)  # about the run of the program before this one
        self._notices = NoticeArea((self.notice, self.model_notice, self.run_notice))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header())
        column.addLayout(_centred(self._notices))
        column.addWidget(self.stack, 1)
        column.addLayout(self._bottom())
        self._connect()
        self.show_model(None)
        self._show(None, [])

    def show_model(self, status: EngineStatus | None) -> None:
        """A model was loaded, or there is none."""
        self.welcome.show_model(status)
        self.writing.refresh()

    def minimumSizeHint(self) -> QSize:
        """Room for a few words in each line, less where the parts beside it leave less in a large font."""
        rest = self.screen().availableSize().width() - self.fontMetrics().height() * _LINES_BESIDE
        width = max(min(rest, _LEAST_WIDTH), share_of_screen(self, _LEAST_WIDTH, 0.23))
        return QSize(width, super().minimumSizeHint().height())

    def focus_composer(self) -> None:
        """Let the user type."""
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give notices their share of another height, and the title its room in another width."""
        super().resizeEvent(event)
        self.parameters.be_short(self.width() < self.fontMetrics().averageCharWidth() * _ROOMY_CHARACTERS)
        self._notices.fit()

    def _header(self) -> QWidget:
        header = QFrame()
        heading(self.title, 1.1)
        self.sidebar_button = icon_button(
            "panel-left", tr("Show or hide the list of chats"), self.sidebar_toggled.emit
        )
        self.parameters = ParametersButton(self._session)
        self.export_button = icon_button("export", tr("Export this chat"), self.export_requested.emit)
        self.panel_button = icon_button(
            "panel-right", tr("Show or hide the live panel"), self.panel_toggled.emit
        )
        row = QHBoxLayout(header)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(6)
        row.addWidget(self.sidebar_button)
        row.addWidget(self.title, 1)
        row.addWidget(self.parameters)
        row.addWidget(self.export_button)
        row.addWidget(self.panel_button)
        return header

    def _bottom(self) -> QHBoxLayout:
        column = QWidget()
        inner = QVBoxLayout(column)
        inner.setContentsMargins(0, 0, 0, 14)
        inner.setSpacing(10)
        inner.addWidget(self.strip)
        inner.addWidget(self.composer)
        self._bottom_column = column
        self.apply_width()
        return _centred(column)

    def apply_width(self) -> None:
        """Give notices, view and composer the same width, from the font."""
        width = self.fontMetrics().averageCharWidth() * COLUMN_CHARACTERS
        for column in (self._notices, self._bottom_column):
            column.setMaximumWidth(width)
        self.view.apply_width()

    def _connect(self) -> None:
        session, view = self._session, self.view
        session.opened.connect(self._show)
        session.begun.connect(self._on_begun)
        session.renamed.connect(self._on_renamed)
        session.message_added.connect(self._on_added)
        session.messages_changed.connect(view.update_messages)
        session.message_finished.connect(view.finish_message)
        session.text_added.connect(view.append_text)
        session.prompt_progress.connect(view.show_prompt_progress)
        session.message_changed.connect(view.change_message)
        session.generation.searching.connect(view.show_search)
        session.generation.remaining_changed.connect(view.show_remaining)
        view.action.connect(self._on_action)
        view.edited.connect(self.turns.edit)
        view.edit_changed.connect(self._storage.save_edit)
        view.edit_discarded.connect(self.turns.offer_edit_back)
        self.turns.edits_read.connect(view.show_edits)
        session.messages_changed.connect(self._on_changed)
        self.welcome.suggested.connect(self._suggest)

    @Slot(object, object)
    def _show(self, conversation: Conversation | None, rows: Sequence[MessageRow]) -> None:
        self._on_renamed(conversation)
        self.view.show_messages(rows)
        self.stack.setCurrentWidget(self.view if rows else self.welcome)
        self.export_button.setEnabled(conversation is not None)

    @Slot(object)
    def _on_begun(self, conversation: Conversation) -> None:
        self._on_renamed(conversation)
        self.export_button.setEnabled(True)

    @Slot(object)
    def _on_renamed(self, conversation: Conversation | None) -> None:
        self.title.setText(conversation.title if conversation else tr("New chat"))

    @Slot(object)
    def _on_added(self, row: MessageRow) -> None:
        self.stack.setCurrentWidget(self.view)
        self.view.add_message(row)

    @Slot(str, int)
    def _on_action(self, action: str, message_id: int) -> None:
        if action == Action.NEW_CHAT:
            self._session.new_chat()
            self.focus_composer()
        elif action == Action.PARAMETERS:
            self.parameters.open_parameters()
        elif action == Action.ABOUT:
            self.show_details(message_id)
        else:
            self.turns.act(action, message_id)

    def show_details(self, message_id: int) -> None:
        """Show how an answer was written, and offer to write it again."""
        rows = self._session.messages
        row = next((row for row in rows if row.id == message_id), None)
        if row is None:
            return
        ready = self._session.model is not None and not self._session.busy
        dialog = DetailsDialog(row, left_out(rows, row), can_answer=ready, parent=self.window())
        dialog.again_requested.connect(lambda: self.turns.act(Action.AGAIN, message_id))
        dialog.open()

    @Slot(object)
    def _on_changed(self, rows: Sequence[MessageRow]) -> None:
        self.stack.setCurrentWidget(self.view if rows else self.welcome)

    def _suggest(self, text: str) -> None:
        self.writing.suggest(text)
        self.focus_composer()


def _centred(column: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setContentsMargins(SIDE, 0, SIDE, 0)
    row.addStretch(1)
    row.addWidget(column, 1000)
    row.addStretch(1)
    return row
