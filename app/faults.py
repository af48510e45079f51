"""What happens when the program itself is at fault: the log file, the message, and signals from outside."""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QObject, QSocketNotifier, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.dialogs import MessageDialog, show_error
from app.errors import UnexpectedError
from app.i18n import tr
from app.paths import ensure_dir, log_path
from engine.errors import EngineError

LOG_BYTES = 1_000_000  # per file
LOG_FILES = 4
log = logging.getLogger(__name__)


def start_logging() -> None:
    """Log to a rotating file, and warnings to the terminal, if there is one.

    A folder that cannot be written to costs the log, not the program.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    if sys.stderr is not None:  # None in a windowed program
        console = logging.StreamHandler()
        console.setLevel(logging.WARNING)
        root.addHandler(console)
    try:
        path = log_path()
        ensure_dir(path.parent)
        file = logging.handlers.RotatingFileHandler(
            path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
        )
    except (OSError, EngineError) as error:
        log.warning("no log file: %s", error)
    else:
        root.addHandler(file)
    text = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
    for handler in root.handlers:
        handler.setFormatter(logging.Formatter(text))


def record_crashes() -> None:
    """Have a crash inside a library leave its stacks in `crash.log` beside the log, where there is one."""
    try:
        # Never closed: faulthandler writes to it in the last moment.
        faulthandler.enable(log_path().with_name("crash.log").open("a", encoding="utf-8"))
    except OSError as error:
        log.warning("no crash log: %s", error)


class FaultReporter(QObject):
    """Catches what no other code caught, in any thread: logs it, shows it once, and the program goes on."""

    _happened = Signal(object)  # the exception, from any thread to the GUI thread

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._dialog: MessageDialog | None = None
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
            log.error("uncaught exception", exc_info=error)
            self._happened.emit(error)

    @Slot(object)
    def _show(self, error: BaseException) -> None:
        if self._dialog is not None:
            return  # one at a time: a fault that repeats must not bury the window
        self._dialog = show_error(self._window, UnexpectedError(tr("A part of the window"), error))
        self._dialog.destroyed.connect(self._forget)

    @Slot()
    def _forget(self) -> None:
        self._dialog = None


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
