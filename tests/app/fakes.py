"""A scripted engine in place of the real one: says what the test tells it to, when the test lets it.

factory = ScriptedFactory()
worker = EngineWorker(factory)
worker.load(Path("/models/any"), LoadOptions())
factory.script = ["Hello ", "world"]        # the pieces of the next answers
factory.gate = threading.Event()            # optional: each piece after the first waits for it
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from app.chat.titles import REQUEST
from engine.errors import EngineError
from engine.events import (
    Answer,
    Event,
    Finished,
    FinishReason,
    PromptProgress,
    StatsUpdate,
    TextDelta,
    TurnsDropped,
)
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, SamplingParams
from engine.progress import CancelToken, Progress, ProgressCallback
from engine.status import EngineStatus
from tests.app.figures import EXPERTS, LAYERS, stats_after


@dataclass(frozen=True)
class FakeProbe:
    """One measurement, in the shape of the engine's."""

    name: str
    tokens: int
    seconds: float
    unit: str = "s"


def wait_for(condition: Callable[[], bool], cancel: CancelToken | None, timeout: float = 10) -> None:
    """Block a fake operation until the test lets it go on, it is cancelled, or the test is broken."""
    until = time.monotonic() + timeout
    while not condition() and not (cancel and cancel.cancelled):
        if time.monotonic() > until:
            raise TimeoutError("the test never opened the gate")
        time.sleep(0.002)


class ScriptedEngine:
    """Answers with the factory's script, one event after the other."""

    def __init__(self, factory: ScriptedFactory, path: Path) -> None:
        self.factory = factory
        self.path = path
        self.closed = False
        self.conversations: list[list[Message]] = []
        self.default_params = GenerationParams(sampling=SamplingParams(temperature=0), stop_loops=True)

    def generate(
        self, messages: Sequence[Message], params: GenerationParams, cancel: CancelToken | None = None
    ) -> Iterator[Event]:
        factory = self.factory
        self.conversations.append(list(messages))
        factory.params.append(params)
        if factory.dropped:
            yield TurnsDropped(factory.dropped)
        yield PromptProgress(6, 12, 4)
        yield PromptProgress(12, 12, 4)
        done = 0
        titled = factory.titles is not None and messages[-1].content == REQUEST
        for piece in factory.titles or [] if titled else factory.script:
            if cancel is not None and cancel.cancelled:
                yield Finished(FinishReason.CANCELLED, stats_after(done))
                return
            if isinstance(piece, BaseException):
                raise piece
            done += 1
            yield TextDelta(piece)
            yield StatsUpdate(stats_after(done))
            factory.emitted = done
            gate = factory.title_gate if titled else factory.gate
            if gate is not None:
                wait_for(gate.is_set, cancel)
            if factory.delay:
                time.sleep(factory.delay)
        cancelled = cancel is not None and cancel.cancelled
        reason = FinishReason.CANCELLED if cancelled else factory.reason
        yield Finished(reason, stats_after(done), factory.message, factory.answers)

    def generate_batch(
        self,
        conversations: Sequence[Sequence[Message]],
        params: Sequence[GenerationParams],
        cancel: CancelToken | None = None,
    ) -> Iterator[tuple[int, Event]]:
        """The script's pieces, one of each answer in turn."""
        factory = self.factory
        self.conversations += [list(messages) for messages in conversations]
        factory.params += params
        cancelled = False
        for number in range(len(conversations) if factory.numbered else 0):
            yield number, TextDelta(f"{number + 1}: ")
        for done, piece in enumerate(factory.script, 1):
            if isinstance(piece, BaseException):
                raise piece
            for number in range(len(conversations)):
                yield number, TextDelta(piece)
                yield number, StatsUpdate(stats_after(done))
            factory.emitted = done
            if factory.gate is not None:
                wait_for(factory.gate.is_set, cancel)
            cancelled = cancel is not None and cancel.cancelled
            if cancelled:
                break
        reason = FinishReason.CANCELLED if cancelled else factory.reason
        for number in range(len(conversations)):
            yield number, Finished(reason, replace(stats_after(len(factory.script)), seed=100 + number))

    def status(self) -> EngineStatus:
        return self.factory.status

    def count_tokens(self, text: str) -> int:
        """A token for each word."""
        return len(text.split())

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """The same, and three for each turn."""
        return sum(self.count_tokens(message.content) + 3 for message in messages)

    def close(self) -> None:
        self.closed = True


def make_status(**changes: Any) -> EngineStatus:
    """The status of a small model on a machine without a GPU."""
    values: dict[str, Any] = {
        "model_name": "Starter model",
        "layers": LAYERS,
        "experts": EXPERTS,
        "residency": np.zeros((LAYERS, EXPERTS), dtype=np.bool_),
        "ram_used": 800 * 2**20,
        "vram_used": 0,
        "vram_budget": 0,
        "threads": 2,
        "isa": "avx2",
        "policy": "makespan",
        "device": "CPU",
        "has_gpu": False,
        "context_length": 512,
        "is_starter": True,
    }
    return EngineStatus(**{**values, **changes})


@dataclass
class ScriptedFactory:
    """Implements `app.engine_factory.EngineFactory`. Change the fields at any time from the test."""

    script: list[str | BaseException] = field(default_factory=lambda: ["Paris ", "is the ", "capital."])
    titles: list[str | BaseException] | None = None  # the same where a title is asked for; None: the script
    delay: float = 0.0  # seconds after each piece
    gate: threading.Event | None = None  # after each piece the engine waits until it is set or cancelled
    title_gate: threading.Event | None = None
    reason: FinishReason = FinishReason.EOS
    message: str = ""
    answers: tuple[Answer, ...] = ()  # of a beam search
    numbered: bool = True  # whether answers that are written together begin with their number
    dropped: int = 0  # messages that the next answers are written without
    status: EngineStatus = field(default_factory=make_status)
    load_error: BaseException | None = None
    load_steps: int = 3
    load_gate: threading.Event | None = None  # loading waits for it after its first step
    calibrate_error: BaseException | None = None
    probes: list[FakeProbe] = field(
        default_factory=lambda: [FakeProbe("CPU expert", n, 0.001 * n) for n in (1, 2, 4)]
    )
    calibrate_gate: threading.Event | None = None  # calibration waits for it after its first probe
    profile: Any = "profile"
    download_error: BaseException | None = None
    download_gate: threading.Event | None = None
    starter_error: BaseException | None = None
    model_folder: Path = Path("/models/starter")

    engines: list[ScriptedEngine] = field(default_factory=list)
    params: list[GenerationParams] = field(default_factory=list)
    options: list[LoadOptions] = field(default_factory=list)
    downloads: list[tuple[str, Path]] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)  # of preparing and downloading
    emitted: int = 0

    @property
    def engine(self) -> ScriptedEngine:
        """The engine loaded last."""
        return self.engines[-1]

    def load(
        self, path: Path, options: LoadOptions, progress: ProgressCallback, cancel: CancelToken
    ) -> ScriptedEngine:
        self.options.append(options)
        self._steps("Reading the experts", self.load_steps, progress, cancel, self.load_gate)
        if self.load_error is not None:
            raise self.load_error
        self.engines.append(ScriptedEngine(self, path))
        return self.engine

    def calibrate(
        self,
        engine: ScriptedEngine,
        progress: ProgressCallback,
        cancel: CancelToken,
        on_probe: Callable[[Any], None],
    ) -> Any:
        for done, probe in enumerate(self.probes):
            cancel.raise_if_cancelled()
            progress(Progress("Measuring", done, len(self.probes)))
            on_probe(probe)
            if self.calibrate_gate is not None:
                wait_for(self.calibrate_gate.is_set, cancel)
        cancel.raise_if_cancelled()
        if self.calibrate_error is not None:
            raise self.calibrate_error
        return self.profile

    def prepare_starter(
        self, progress: ProgressCallback, cancel: CancelToken, *, force: bool = False
    ) -> Path:
        self.forced.append(force)
        self._steps("Converting the starter model", 3, progress, cancel, self.download_gate)
        if self.starter_error is not None:
            raise self.starter_error
        return self.model_folder

    def download(
        self,
        repo_id: str,
        folder: Path,
        progress: ProgressCallback,
        cancel: CancelToken,
        *,
        force: bool = False,
    ) -> Path:
        self.forced.append(force)
        self.downloads.append((repo_id, folder))
        self._steps("Downloading", 3, progress, cancel, self.download_gate)
        if self.download_error is not None:
            raise self.download_error
        return folder

    @staticmethod
    def _steps(
        what: str, steps: int, progress: ProgressCallback, cancel: CancelToken, gate: threading.Event | None
    ) -> None:
        for done in range(1, steps + 1):
            cancel.raise_if_cancelled()
            progress(Progress(what, done, steps))
            if gate is not None:
                wait_for(gate.is_set, cancel)
        cancel.raise_if_cancelled()


def shortage() -> EngineError:
    """An error in the engine's words, for tests that show one."""
    return EngineError(
        "The model does not fit.", why="3.2 GB of RAM are missing.", action="Close other programs."
    )
