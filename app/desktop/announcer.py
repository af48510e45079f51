"""Tells screen readers the sentences of the answer that is shown, as they are completed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAccessible

from app.chat.session import ChatSession
from app.desktop.sentences import Sentences
from app.i18n import tr
from app.settings import SettingsStore, registry
from app.storage.rows import MessageRow, MessageState

Say = Callable[[str], None]


class Announcer(QObject):
    """Politely: a screen reader finishes what it is saying first. Costs nothing where there is none."""

    def __init__(
        self,
        session: ChatSession,
        settings: SettingsStore,
        say: Say,
        parent: QObject,
        is_heard: Callable[[], bool] = QAccessible.isActive,
    ) -> None:
        super().__init__(parent)
        self._session, self._settings, self._say, self._is_heard = session, settings, say, is_heard
        self._sentences = Sentences()
        self._message: int | None = None
        session.text_added.connect(self._on_text)
        session.message_finished.connect(self._on_finished)

    @Slot(int, str)
    def _on_text(self, message_id: int, text: str) -> None:
        if not self._wanted() or not self._is_shown():
            return
        if message_id != self._message:
            self._message, self._sentences = message_id, Sentences()
        for sentence in self._sentences.feed(text):
            self._say(sentence)

    @Slot(object)
    def _on_finished(self, row: MessageRow) -> None:
        if self._message != row.id:
            return
        self._message = None
        if not self._wanted():
            return
        for sentence in self._sentences.finish():
            self._say(sentence)
        if row.state is MessageState.COMPLETE:
            self._say(tr("The answer is complete."))

    def _wanted(self) -> bool:
        return self._is_heard() and self._settings.get(registry.ANNOUNCE)

    def _is_shown(self) -> bool:
        chat = self._session.conversation
        return chat is not None and chat.id == self._session.answering_id
