"""The middle of the window: the chat's title, its messages or a welcome, and the composer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.chat.composer import Composer, ComposerState
from app.chat.model_strip import ModelStrip
from app.chat.notice_bar import NoticeBar
from app.chat.notices import Action
from app.chat.session import ChatSession
from app.chat.turns import TurnsController
from app.chat.view import COLUMN_CHARACTERS, SIDE, ConversationView
from app.chat.welcome import Welcome
from app.i18n import tr
from app.storage import ChatStore, Conversation, MessageRow
from app.storage.thread import StorageThread
from app.theme import heading, theme
from app.widgets.elided import ElidedText
from engine.status import EngineStatus


class ChatPage(QWidget):
    """Shows a `ChatSession` and passes on what the user asks for."""

    export_requested = Signal()
    sidebar_toggled = Signal()
    panel_toggled = Signal()

    def __init__(self, session: ChatSession, storage: StorageThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._storage = session, storage
        self._draft_of: int | None = None  # the chat whose draft the composer holds
        self._restoring = False  # the composer changes without the user
        self.turns = TurnsController(session, storage, self)
        self.title = ElidedText()
        self.view = ConversationView()
        self.welcome = Welcome()
        self.stack = QStackedWidget()
        self.stack.addWidget(self.welcome)
        self.stack.addWidget(self.view)
        self.strip = ModelStrip()
        self.composer = Composer()
        self.notice = NoticeBar(dismissable=True)  # about the saved chats as a whole
        self.model_notice = NoticeBar(dismissable=True)  # about the loaded model
        self.run_notice = NoticeBar(dismissable=True)  # about the run of the program before this one
        notices = QVBoxLayout()
        notices.setContentsMargins(SIDE, 0, SIDE, 0)
        notices.addWidget(self.notice)
        notices.addWidget(self.model_notice)
        notices.addWidget(self.run_notice)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header())
        column.addLayout(notices)
        column.addWidget(self.stack, 1)
        column.addLayout(self._bottom())
        self._connect()
        self.show_model(None)
        self._show(None, [])

    def show_model(self, status: EngineStatus | None) -> None:
        """A model was loaded, or there is none."""
        self.welcome.show_model(status)
        self._refresh_composer()

    def focus_composer(self) -> None:
        """Let the user type."""
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _header(self) -> QWidget:
        header = QFrame()
        heading(self.title, 1.1)
        self.sidebar_button = _tool("panel-left", tr("Show or hide the list of chats"))
        self.sidebar_button.clicked.connect(self.sidebar_toggled)
        self.export_button = _tool("export", tr("Export this chat"))
        self.export_button.clicked.connect(self.export_requested)
        self.panel_button = _tool("panel-right", tr("Show or hide the live panel"))
        self.panel_button.clicked.connect(self.panel_toggled)
        row = QHBoxLayout(header)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(6)
        row.addWidget(self.sidebar_button)
        row.addWidget(self.title, 1)
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
        row = QHBoxLayout()
        row.setContentsMargins(SIDE, 0, SIDE, 0)
        row.addStretch(1)
        row.addWidget(column, 1000)
        row.addStretch(1)
        self.apply_width()
        return row

    def apply_width(self) -> None:
        """Give view and composer the same width, from the font."""
        self._bottom_column.setMaximumWidth(self.fontMetrics().averageCharWidth() * COLUMN_CHARACTERS)
        self.view.apply_width()

    def _connect(self) -> None:
        session, view, composer = self._session, self.view, self.composer
        session.opened.connect(self._show)
        session.begun.connect(self._on_begun)
        session.renamed.connect(self._on_renamed)
        session.message_added.connect(self._on_added)
        session.messages_changed.connect(view.update_messages)
        session.message_finished.connect(view.finish_message)
        session.text_added.connect(view.append_text)
        session.prompt_progress.connect(view.show_prompt_progress)
        session.busy_changed.connect(lambda _: self._refresh_composer())
        session.refused.connect(self._give_back)
        self.strip.changed.connect(self._refresh_composer)
        view.action.connect(self._on_action)
        view.edited.connect(self.turns.edit)
        view.edit_changed.connect(self._storage.save_edit)
        self.turns.edits_read.connect(view.show_edits)
        session.messages_changed.connect(self._on_changed)
        composer.send_requested.connect(self._send)
        composer.stop_requested.connect(session.stop)
        composer.text_changed.connect(self._on_text_changed)
        self.welcome.suggested.connect(self._suggest)

    @Slot(object, object)
    def _show(self, conversation: Conversation | None, rows: Sequence[MessageRow]) -> None:
        self._on_renamed(conversation)
        self.view.show_messages(rows)
        self.stack.setCurrentWidget(self.view if rows else self.welcome)
        self.export_button.setEnabled(conversation is not None)
        self._draft_of = chat_id = conversation.id if conversation else None
        self._fill_composer("")
        self._storage.flush()
        self._storage.run(ChatStore.draft, chat_id).then(lambda text: self._restore(chat_id, text))
        self._refresh_composer()

    @Slot(object)
    def _on_begun(self, conversation: Conversation) -> None:
        self._on_renamed(conversation)
        self.export_button.setEnabled(True)
        self._draft_of = conversation.id
        if self.composer.text:
            self._storage.save_draft(conversation.id, self.composer.text)

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
        else:
            self.turns.act(action, message_id)

    @Slot(object)
    def _on_changed(self, rows: Sequence[MessageRow]) -> None:
        self.stack.setCurrentWidget(self.view if rows else self.welcome)

    def _send(self, text: str) -> None:
        if self._session.busy or self._session.model is None:
            return
        self.composer.set_text("")
        self._session.send(text)

    @Slot(str)
    def _give_back(self, text: str) -> None:
        written = self.composer.text
        self.composer.set_text(f"{text}\n{written}" if written else text)

    def _suggest(self, text: str) -> None:
        self.composer.set_text(text)
        self.focus_composer()

    def _on_text_changed(self, text: str) -> None:
        if not self._restoring:
            self._storage.save_draft(self._draft_of, text)

    def _restore(self, chat_id: int | None, draft: str) -> None:
        if self._draft_of == chat_id and draft and not self.composer.text:
            self._fill_composer(draft)

    def _fill_composer(self, text: str) -> None:
        self._restoring = True
        self.composer.set_text(text)
        self._restoring = False

    def _refresh_composer(self) -> None:
        session = self._session
        shown = session.conversation.id if session.conversation else None
        if session.busy:
            elsewhere = session.answering_id not in (None, shown)
            reason = tr("An answer is being written in another chat. Escape stops it.") if elsewhere else ""
            self.composer.set_state(ComposerState.GENERATING, reason)
        elif session.model is None:
            if self.strip.loading:
                reason = tr("You can write already. Sending works once the model is loaded.")
            else:
                reason = tr("You can write, but there is no model yet that could answer.")
            self.composer.set_state(ComposerState.UNAVAILABLE, reason)
        else:
            self.composer.set_state(ComposerState.READY)


def _tool(icon: str, name: str) -> QToolButton:
    button = QToolButton()
    button.setToolTip(name)
    button.setAccessibleName(name)
    theme().set_icon(button, icon, "muted")
    return button
