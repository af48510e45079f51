"""One program for each data folder: a second start brings the first one's window to the front.

A lock file says that a program runs, and a local socket reaches it. After a kill both may be left behind: the
lock is freed by the operating system and taken over, the socket is removed by whoever holds the lock.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from enum import Enum, auto
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, QStandardPaths, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from app.desktop.handover import MAX_BYTES, TAKEN, Handover, decode, encode

log = logging.getLogger(__name__)

PATIENCE_MS = 5000  # a program that is starting or ending needs some time to answer, or to go
_LOOK_MS = 50
_LONGEST_NAME = (
    80  # of a socket's path, in bytes: the kernel has room for 107, and Qt adds a folder meanwhile
)


class Start(Enum):
    """What is to become of this start."""

    FIRST = auto()  # go on
    HANDED_OVER = auto()  # the other one has taken over what was asked for
    UNANSWERED = auto()  # there is another one, and it does not answer


class SingleInstance(QObject):
    """Takes part in deciding who is first; the first one hears of the others by `asked`."""

    asked = Signal(object)  # Handover

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._lock = QLockFile(str(folder / "running.lock"))
        self._lock.setStaleLockTime(0)  # however long it has been held, it counts while its process lives
        self._server: QLocalServer | None = None

    def begin(self, handover: Handover, patience_ms: int = PATIENCE_MS) -> Start:
        """Become the first, or hand over to the one that is."""
        until = time.monotonic() + patience_ms / 1000
        while True:
            if self._lock.tryLock(_LOOK_MS):
                self._listen()
                return Start.FIRST
            if self._lock.error() is not QLockFile.LockError.LockFailedError:
                # A folder that cannot be written to: what can be done there, the storage will say.
                log.warning("no lock in %s: %s", self._folder, self._lock.error().name)
                return Start.FIRST
            if any(send(name, handover) for name in socket_names(self._folder)):
                return Start.HANDED_OVER
            if time.monotonic() > until:
                return Start.UNANSWERED
            remove_if_left_behind(self._folder / "running.lock")
            time.sleep(_LOOK_MS / 1000)

    @Slot()
    def stop_listening(self) -> None:
        """This program is ending: a start that asks from now on waits for `end`, and is the next first."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def end(self) -> None:
        """Let the next start be the first."""
        self.stop_listening()
        self._lock.unlock()

    def _listen(self) -> None:
        server = self._server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        server.newConnection.connect(self._on_connection)
        for name in socket_names(self._folder):
            QLocalServer.removeServer(name)  # it can only be a dead one's: the lock is ours
            if server.listen(name):
                return
            log.warning("no socket at %s: %s", name, server.errorString())

    @Slot()
    def _on_connection(self) -> None:
        while self._server is not None and self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)
            self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() > MAX_BYTES:
                socket.abort()
            return
        handover = decode(bytes(socket.readLine(MAX_BYTES).data()))
        if handover is None:
            socket.abort()
            return
        socket.write(TAKEN)
        socket.disconnectFromServer()
        self.asked.emit(handover)


def send(name: str, handover: Handover, timeout_ms: int = 2000) -> bool:
    """Hand over to the program that listens at `name`; whether it has taken it."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(timeout_ms):
        return False
    _let_come_to_the_front()
    socket.write(encode(handover))
    while not socket.canReadLine():
        if not socket.waitForReadyRead(timeout_ms):
            return False
    return bytes(socket.readLine().data()) == TAKEN


def socket_names(folder: Path) -> tuple[str, ...]:
    """Where the program that uses `folder` may listen: the same for every way of writing the folder's path.

    The first is the best. Not every file system can hold a socket, and not every path is short enough.
    """
    who = str(os.getuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "")
    key = f"{who}\n{os.path.normcase(os.path.realpath(folder))}"
    name = f"fiddler-chat-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:24]}"
    if sys.platform == "win32":
        return (name,)
    home = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
    # Not QDir.tempPath(): that may differ between a terminal and the desktop.
    places = (os.path.join(os.path.realpath(folder), "running.socket"), f"{home}/.{name}", f"/tmp/{name}")
    return tuple(place for place in places if len(os.fsencode(place)) <= _LONGEST_NAME)


def remove_if_left_behind(path: Path) -> bool:
    """Remove a lock file that no process holds, although its process number is in use again."""
    if sys.platform == "win32":
        try:
            path.unlink()  # Windows refuses this while the file is open
        except OSError:
            return False
        return True
    import fcntl

    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.read(1):  # an empty one is being written at this moment
                path.unlink()
                return True
    except OSError:
        return False
    return False


def _let_come_to_the_front() -> None:
    """Windows lets only the program in front give its place away: to whoever is asked next."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.AllowSetForegroundWindow(-1)
