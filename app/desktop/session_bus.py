"""A connection of its own to the desktop's message bus. Calls are answered later; nothing waits."""

from __future__ import annotations

import logging
from itertools import count

from PySide6.QtCore import QObject
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCall, QDBusPendingCallWatcher

from app.desktop.awake import Answered

log = logging.getLogger(__name__)
_numbers = count()


class SessionBus(QObject):
    """`answered` is told for each call whether it worked; without a bus it is told nothing."""

    def __init__(self, answered: Answered) -> None:
        super().__init__()
        self._answered = answered
        self._name = f"fiddler-chat-{next(_numbers)}"
        kind = QDBusConnection.BusType.SessionBus
        self._connection: QDBusConnection | None = QDBusConnection.connectToBus(kind, self._name)

    def call(self, service: str, path: str, interface: str, method: str, *texts: str) -> None:
        """Call a method with strings."""
        if self._connection is None:
            return
        message = QDBusMessage.createMethodCall(service, path, interface, method)
        message.setArguments(list(texts))
        pending: QDBusPendingCall = self._connection.asyncCall(message)
        watcher = QDBusPendingCallWatcher(pending, self)
        watcher.finished.connect(self._on_finished)

    def close(self) -> None:
        """Leave the bus."""
        self._connection = None  # Qt leaves only when nobody refers to the connection
        QDBusConnection.disconnectFromBus(self._name)

    def _on_finished(self, watcher: QDBusPendingCallWatcher) -> None:
        failed = watcher.isError()
        if failed:
            log.info("not offered by this desktop: %s", watcher.error().message())
        watcher.deleteLater()
        self._answered(not failed)
