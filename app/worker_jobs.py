"""The thread side of the worker: one job after the other, and the one place that catches everything."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.engine_factory import LoadedEngine
from app.errors import MemoryShortageError, UnexpectedError
from engine.errors import Cancelled, EngineError
from engine.events import (
    Event,
    Finished,
    GenerationStats,
    PromptProgress,
    StatsUpdate,
    TextDelta,
    TurnsDropped,
)
from engine.params import GenerationParams, Message
from engine.progress import CancelToken, Progress

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """One request: `run` does the work in the worker's thread and raises EngineError when it cannot."""

    operation: str  # "load", "calibrate", "generate", "prepare_starter", "download", "close_model", "aside"
    title: str  # the same for the user, as the subject of a sentence
    run: Callable[[], None]
    token: CancelToken = field(default_factory=CancelToken)


class Outbox:
    """What the worker's thread has to say and the window has not fetched yet. Thread-safe.

    Text accumulates; of progress and figures only the latest counts. However fast the engine is and however
    busy the window, this holds at most one answer's unread text.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._wake = wake
        self._awake = False
        self._contents: list[OutboxContent] = []

    def put_progress(self, progress: Progress) -> None:
        """Replace the progress of the operation that runs."""
        with self._lock:
            self._of(None).progress = progress
            first = self._first()
        if first:
            self._wake()

    def put_event(self, request_id: int, event: Event) -> None:
        """Add an event of a generation (all but `Finished`)."""
        with self._lock:
            content = self._of(request_id)
            if isinstance(event, TextDelta):
                content.text.append(event.text)
            elif isinstance(event, StatsUpdate):
                content.stats = event.stats
            elif isinstance(event, PromptProgress):
                content.prompt = event
            elif isinstance(event, TurnsDropped):
                content.dropped = event
            first = self._first()
        if first:
            self._wake()

    def take(self) -> list[OutboxContent]:
        """Everything since the last call, one item per operation; the next `put_…` wakes again."""
        with self._lock:
            contents, self._contents = self._contents, []
            self._awake = False
        return contents

    def _of(self, request_id: int | None) -> OutboxContent:
        for content in reversed(self._contents):
            if content.request_id == request_id:
                return content
        self._contents.append(OutboxContent(request_id))
        return self._contents[-1]

    def _first(self) -> bool:
        first, self._awake = not self._awake, True
        return first


@dataclass
class OutboxContent:
    """What one operation said since the last fetch; `request_id` is None for all but generations."""

    request_id: int | None
    progress: Progress | None = None
    dropped: TurnsDropped | None = None
    prompt: PromptProgress | None = None
    text: list[str] = field(default_factory=list)
    stats: GenerationStats | None = None


class JobRunner(QObject):
    """Lives in the worker's thread and runs the jobs that arrive, in their order."""

    ended = Signal(object, object)  # Job, EngineError or None

    @Slot(object)
    def run(self, job: Job | None) -> None:
        """Run one job and report how it ended; nothing that happens in it leaves this method.

        None ends the thread.
        """
        if job is None:
            self.thread().quit()
            return
        try:
            job.token.raise_if_cancelled()
            job.run()
        except Cancelled as error:
            self.ended.emit(job, error)
        except EngineError as error:
            log.warning("%s failed: %s", job.operation, error)
            self.ended.emit(job, error)
        except MemoryError:
            log.exception("%s ran out of memory", job.operation)
            self.ended.emit(job, MemoryShortageError(job.title))
        except Exception as error:  # the thread's boundary: a fault must not end the program
            log.exception("%s ended with an unexpected error", job.operation)
            self.ended.emit(job, UnexpectedError(job.title, error))
        else:
            self.ended.emit(job, None)


def answers(
    engine: LoadedEngine,
    outbox: Outbox,
    request_ids: Sequence[int],
    messages: Sequence[Message],
    params: Sequence[GenerationParams],
    cancel: CancelToken,
) -> Iterator[tuple[int, Finished]]:
    """Have a conversation answered once for each id, together; yields the end of each as they come.

    Everything else that the answers say goes into the outbox.
    """
    if len(request_ids) == 1:
        events: Iterator[tuple[int, Event]] = (
            (0, event) for event in engine.generate(messages, params[0], cancel)
        )
    else:
        events = engine.generate_batch([messages] * len(request_ids), params, cancel)
    last: dict[int, Event] = {}
    for place, event in events:
        last[place] = event
        if isinstance(event, Finished):
            yield request_ids[place], event
        else:
            outbox.put_event(request_ids[place], event)
    for place in range(len(request_ids)):
        finished_or_fault(last.get(place))


def whole_text(events: Iterator[Event]) -> tuple[str, Finished]:
    """All text of an answer that nobody watches, and its end."""
    told = list(events)
    text = "".join(event.text for event in told if isinstance(event, TextDelta))
    return text, finished_or_fault(told[-1] if told else None)


def finished_or_fault(last: Event | None) -> Finished:
    """The event that ends every generation; an engine that stops without one has a fault."""
    if isinstance(last, Finished):
        return last
    raise RuntimeError("the generation ended without a Finished event")
