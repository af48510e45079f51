"""What happens when the program itself is at fault: the message, and signals from outside."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QObject, QSocketNotifier, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.desktop.restart import start_again
from app.errors import UnexpectedError
from app.fault_dialog import FaultDialog
from app.fault_report import fault_report
from app.i18n import tr

log = logging.getLogger(__name__)


class FaultReporter(QObject):
    """Catches what no other code caught, in any thread: logs it, shows it once, and the program goes on.

    `restart_requested` comes if the user would rather begin anew, which `restart_wanted` remembers.
    """

    restart_requested = Signal()
    _happened = Signal(object)  # the exception, from any thread to the GUI thread

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._dialog: FaultDialog | None = None
        self.restart_wanted = False
        self._happened.connect(self._show, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Take over Python's hooks for uncaught exceptions."""
        sys.excepthook = self._hook
        threading.excepthook = lambda hook: self._take(hook.exc_value)

    def uninstall(self) -> None:
        """Give the hooks back."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def _hook(
        self, kind: type[BaseException], error: BaseException, _traceback: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, _traceback)
            return
        self._take(error)

    def _take(self, error: BaseException | None) -> None:
        if error is not None:
            log.error("uncaught exception\n%s", fault_report(error))
            self._happened.emit(error)

    @Slot(object)
    def _show(self, error: BaseException) -> None:
        if self._dialog is not None:
            return  # one at a time: a fault that repeats must not bury the window
        dialog = self._dialog = FaultDialog(self._window, UnexpectedError(tr("A part of the window"), error))
        dialog.restart_requested.connect(self._restart)
        dialog.open()
        dialog.destroyed.connect(self._forget)

    @Slot()
    def _restart(self) -> None:
        self.restart_wanted = True
        self.restart_requested.emit()

    @Slot()
    def _forget(self) -> None:
        self._dialog = None


def tell_of_failed_start(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Python's hook for a fault before there is a window: a message, as few look at a terminal."""
    sys.__excepthook__(kind, error, traceback)
    if issubclass(kind, KeyboardInterrupt):
        return
    log.error("the start failed\n%s", fault_report(error))
    dialog = FaultDialog(None, UnexpectedError(tr("The start"), error), can_go_on=False)
    dialog.exec()
    if dialog.restart_wanted:
        start_again([])


def stop_on_signals(close: Callable[[], object], parent: QObject) -> None:
    """Close the window on Ctrl+C or a polite kill. Python runs its handlers only between its own steps, so
    the signal also wakes Qt's event loop, through a socket."""
    reader, writer = socket.socketpair()
    for end in (reader, writer):
        end.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: close())
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, parent)

    def drain() -> None:
        reader.recv(64)  # returning to Python is what lets it run the handler above
        assert writer.fileno() >= 0  # keeps the writing end open as long as the notifier lives

    notifier.activated.connect(drain)
