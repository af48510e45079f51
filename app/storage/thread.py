"""The window's way to the saved chats: every operation runs on one thread of its own, in order.

    storage.run(ChatStore.messages, chat_id).then(self._show, self._explain)

The callbacks arrive on the thread that made the `StorageThread`, through its event loop.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Concatenate, Generic, ParamSpec, TypeVar

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal, Slot
from shiboken6 import isValid

from app.i18n import tr
from app.storage.errors import DamagedError, Notice, StorageError
from app.storage.keeping import Kept
from app.storage.opening import Opened, open_in_memory, open_store
from app.storage.rows import MessageRow, MessageState
from app.storage.store import ChatStore
from engine.events import FinishReason, GenerationStats

P = ParamSpec("P")
T = TypeVar("T")

PARTIAL_MILLISECONDS = 1000  # a crash loses at most this much of an answer
_log = logging.getLogger(__name__)


class Operation(Generic[T]):
    """One operation under way. A failure that nobody asked about still has the common signal."""

    def __init__(self) -> None:
        self._done: list[Callable[[T], object]] = []
        self._failed: list[Callable[[StorageError], object]] = []
        self._outcome: tuple[T] | StorageError | None = None

    def then(
        self, done: Callable[[T], object], failed: Callable[[StorageError], object] | None = None
    ) -> Operation[T]:
        """Call `done(result)` or `failed(error)` when it is known; at once if it is known already.

        A bound method of a Qt object that has been destroyed meanwhile is not called. Without any `failed`,
        the error goes to `StorageThread.failed`.
        """
        if self._outcome is None:
            self._done.append(done)
            if failed is not None:
                self._failed.append(failed)
        elif isinstance(self._outcome, tuple):
            _call(done, self._outcome[0])
        elif failed is not None:
            _call(failed, self._outcome)
        return self

    def _settle(self, outcome: tuple[T] | StorageError) -> bool:
        """Deliver the outcome; False if it is an error that nobody took.

        The callbacks are let go of here: the storage thread may hold its last operation for long, and what
        they belong to is often of Qt and must not end there.
        """
        self._outcome = outcome
        on_done, self._done = self._done, []
        on_failed, self._failed = self._failed, []
        if isinstance(outcome, StorageError):
            for failed in on_failed:
                _call(failed, outcome)
            return bool(on_failed)
        for done in on_done:
            _call(done, outcome[0])
        return True


class StorageThread(QObject):
    """Owns the thread that the chats' database lives on.

    `opened` comes once after `start`. If the file cannot be had, the chats are kept in memory instead: then
    `Opened.saved` is False and a notice says why. `failed` carries the errors that no operation's own
    callback took.
    """

    opened = Signal(object)  # Opened; its `store` belongs to the thread: use `run`
    failed = Signal(object)  # StorageError
    _settled = Signal(object, object)  # Operation, outcome: from the thread to ours

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._jobs: queue.SimpleQueue[Callable[[ChatStore], None] | None] = queue.SimpleQueue()
        # Daemon: a program that dies without closing must not hang on it.
        self._thread = threading.Thread(target=self._work, name="storage", daemon=True)
        self._closed = False
        self._partials: dict[int, str] = {}
        self._drafts: Kept[int | None] = Kept(
            lambda chat, text: self.run(ChatStore.save_draft, chat, text), self.failed.emit, self._start_timer
        )
        self._edits: Kept[int] = Kept(
            lambda message, text: self.run(ChatStore.save_edit, message, text),
            self.failed.emit,
            self._start_timer,
        )
        self._troubled: set[int] = set()  # answers whose partial text could not be saved
        self._late: dict[int, Callable[[ChatStore], MessageRow]] = {}  # ended ones; the thread's alone
        self._timer = QTimer(self, interval=PARTIAL_MILLISECONDS, singleShot=True)
        self._timer.timeout.connect(self.flush)
        self._settled.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.close)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be asked for."""
        return self._closed

    def start(self) -> None:
        """Open the database, in the thread; operations asked for meanwhile wait for it."""
        self._thread.start()

    def run(
        self, method: Callable[Concatenate[ChatStore, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Operation[T]:
        """Queue `method(store, …)`, such as `run(ChatStore.rename, chat_id, "Rome")`."""
        operation: Operation[T] = Operation()
        if self._closed:
            error = StorageError(tr("The program is closing."), why=tr("The chats are no longer open."))
            self._settled.emit(operation, error)
            return operation

        def job(store: ChatStore) -> None:
            self._settled.emit(operation, _outcome(lambda: method(store, *args, **kwargs)))

        self._jobs.put(job)
        return operation

    def save_partial(self, message_id: int, content: str) -> None:
        """Keep the answer so far; call it as often as text comes, it is written about once a second."""
        self._partials[message_id] = content
        self._start_timer()

    def finish_message(
        self,
        message_id: int,
        content: str,
        state: MessageState = MessageState.COMPLETE,
        *,
        stats: GenerationStats | None = None,
        reason: FinishReason | None = None,
        note: str = "",
    ) -> Operation[MessageRow]:
        """Save the whole answer and how it ended; a partial one that still waits is dropped.

        What a full disk or another program keeps from being saved is tried again before whatever is done
        next, and at the end.
        """
        self._partials.pop(message_id, None)
        self._troubled.discard(message_id)

        def finish(store: ChatStore) -> MessageRow:
            return store.finish_message(message_id, content, state, stats=stats, reason=reason, note=note)

        def first(store: ChatStore) -> MessageRow:
            try:
                return finish(store)
            except StorageError as error:
                if _may_work_later(error):
                    self._late[message_id] = finish
                raise

        return self.run(first)

    def save_draft(self, conversation_id: int | None, text: str) -> None:
        """Keep what is typed but not sent; call it at each change, it is written about once a second."""
        self._drafts.put(conversation_id, text)
        self._start_timer()

    def save_edit(self, message_id: int, text: str) -> None:
        """Keep what a message's text is being changed to, in the same way; empty ends that."""
        self._edits.put(message_id, text)
        self._start_timer()

    @Slot()
    def flush(self) -> None:
        """Write partial answers, drafts and edits now (in the thread; this does not wait)."""
        self._timer.stop()
        partials, self._partials = self._partials, {}
        for message_id, content in partials.items():
            self.run(ChatStore.update_partial, message_id, content).then(
                lambda _: None, partial(self._partial_failed, message_id)
            )
        self._drafts.flush()
        self._edits.flush()

    @Slot()
    def close(self) -> None:
        """Finish everything that was asked for and close the database; waits for it. Called at exit, too."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _partial_failed(self, message_id: int, error: StorageError) -> None:
        if message_id not in self._troubled:  # the next second would say the same again
            self._troubled.add(message_id)
            self.failed.emit(error)

    def _start_timer(self) -> None:
        if not self._timer.isActive() and not self._closed:
            self._timer.start()

    @Slot(object, object)
    def _deliver(self, operation: Operation[object] | None, outcome: object) -> None:
        if operation is None:
            self.opened.emit(outcome)
        elif isinstance(outcome, (tuple, StorageError)) and not operation._settle(outcome):
            self.failed.emit(outcome)

    def _work(self) -> None:
        opened = _open_or_remember(self._path)
        self._settled.emit(None, opened)
        while (job := self._next(opened.store)) is not None:
            self._try_late(opened.store)
            job(opened.store)
        self._try_late(opened.store)
        opened.store.close()

    def _try_late(self, store: ChatStore) -> None:
        for message_id, finish in tuple(self._late.items()):
            outcome = _outcome(partial(finish, store))
            if isinstance(outcome, tuple) or not _may_work_later(outcome):
                del self._late[message_id]

    def _next(self, store: ChatStore) -> Callable[[ChatStore], None] | None:
        """The next job. While there is none, the search index is brought up to date step by step."""
        while self._jobs.empty():
            outcome = _outcome(store.index_some)
            if isinstance(outcome, StorageError):  # a search would say so; it is tried after the next job
                _log.warning("The search index is behind: %s", outcome)
            if outcome != (True,):
                break
        return self._jobs.get()


def _open_or_remember(path: Path) -> Opened:
    opened = _outcome(lambda: open_store(path))
    if isinstance(opened, tuple):
        return opened[0]
    memory = open_in_memory(path)
    action = tr("Chats of this session are not saved: export what you want to keep.")
    if memory.store.conversations(archived=None):
        action = tr("The chats that were saved before are shown all the same.") + " " + action
    notice = Notice(opened.what, why=opened.why, action=f"{opened.action} {action}".strip())
    return Opened(memory.store, (notice,), saved=False)


def _may_work_later(error: StorageError) -> bool:
    """Whether it was the disk or another program, not what was asked for."""
    return isinstance(error.__cause__, sqlite3.Error) and not isinstance(error, DamagedError)


def _outcome(work: Callable[[], T]) -> tuple[T] | StorageError:
    try:
        return (work(),)
    except StorageError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the thread's boundary: it must outlive a fault of ours
        _log.exception("A storage operation failed in an unforeseen way")
        return StorageError(
            tr("The chats could not be read or saved."),
            why=tr("An unforeseen fault: {error}.", error=repr(error)),
            action=tr("Copy your text to a safe place, then start the program again."),
        )


def _call(callback: Callable[[T], object], value: T) -> None:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, QObject) and not isValid(owner):
        return
    callback(value)
