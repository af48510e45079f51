"""Reads files beside the window, for the messages for which they were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.attachments.reading import ReadFiles, read_files
from app.i18n import tr
from app.widgets.background import Background
from engine.errors import EngineError

Place = int | None  # of a message that is being written: its chat, None for one that is not begun


class FileReader(QObject):
    """Files are read in another thread, those of one place in their order.

    A place never waits for another's files: they may lie on a disk that does not answer.
    """

    done = Signal(object, object)  # the place for which they were chosen, ReadFiles
    failed = Signal(object)  # EngineError

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._queues: dict[Place, _Queue] = {}

    def busy(self, place: Place) -> bool:
        """Whether files for a place are still being read."""
        return place in self._queues

    def read(self, place: Place, paths: Sequence[Path], *, may_be_chats: bool = False) -> None:
        """Read files for a place; with `may_be_chats`, those with chats are told of and not read."""
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = _Queue(self, place)
        queue.waiting.append((tuple(paths), may_be_chats))
        self._go_on(queue)

    def move(self, place: Place, to: Place) -> None:
        """What is read for a place is for another now, for which nothing is read."""
        queue = self._queues.pop(place, None)
        if queue is not None:
            queue.place = to
            self._queues[to] = queue

    def _go_on(self, queue: _Queue) -> None:
        if queue.background.busy:
            return
        if not queue.waiting:
            del self._queues[queue.place]
            queue.deleteLater()
            return
        paths, may_be_chats = queue.waiting.pop(0)

        def read() -> ReadFiles:
            return read_files(paths, sort_out_chats=may_be_chats)

        def on_read(found: ReadFiles) -> None:
            self._go_on(queue)
            self.done.emit(queue.place, found)

        def on_failed(error: EngineError) -> None:
            self._go_on(queue)
            self.failed.emit(error)

        queue.background.run(read, on_read, on_failed)


class _Queue(QObject):
    """The files of one place; `waiting`: those that are read next, and whether they may be chats."""

    def __init__(self, parent: QObject, place: Place) -> None:
        super().__init__(parent)
        self.place = place
        self.waiting: list[tuple[tuple[Path, ...], bool]] = []
        self.background: Background[ReadFiles] = Background(tr("Reading the file"), self)
