"""What the window asks of the engine, as protocols. The real engine behind them is `app.real_engine`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.events import Event
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from engine.progress import CancelToken, ProgressCallback
from engine.status import EngineStatus

if TYPE_CHECKING:  # not needed before the window is on the screen
    from engine.profile import Probe, Profile


class TokenCounter(Protocol):
    """A model's tokenizer; any thread may ask at any time, also while an answer is generated."""

    def count_tokens(self, text: str) -> int:
        """How many tokens a text is by itself."""

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """How many tokens a conversation is as the model reads it. Raises EngineError if it cannot be."""


class LoadedEngine(TokenCounter, Protocol):
    """A model that is ready to answer: the part of `engine.runtime.Engine` that the window uses."""

    @property
    def default_params(self) -> GenerationParams:
        """What the model's own generation config recommends."""

    def generate(
        self, messages: Sequence[Message], params: GenerationParams, cancel: CancelToken | None = None
    ) -> Iterator[Event]:
        """Answer a conversation; ends with `Finished` or raises an EngineError."""

    def generate_batch(
        self,
        conversations: Sequence[Sequence[Message]],
        params: GenerationParams | Sequence[GenerationParams],
        cancel: CancelToken | None = None,
    ) -> Iterator[tuple[int, Event]]:
        """Answer conversations together; yields (index, event), and each one's last is `Finished`."""

    def status(self) -> EngineStatus:
        """A snapshot for the panel."""

    def close(self) -> None:
        """Give back all memory and threads."""


class EngineFactory(Protocol):
    """Makes engines and models. All methods block; `EngineWorker` calls them in its thread."""

    def load(
        self, path: Path, options: LoadOptions, progress: ProgressCallback, cancel: CancelToken
    ) -> LoadedEngine:
        """Load the model in `path` with the saved profile of this machine, if there is one."""

    def calibrate(
        self,
        engine: LoadedEngine,
        progress: ProgressCallback,
        cancel: CancelToken,
        on_probe: Callable[[Probe], None],
    ) -> Profile:
        """Measure the machine with a loaded model; save and return the profile."""

    def prepare_starter(
        self, progress: ProgressCallback, cancel: CancelToken, *, force: bool = False
    ) -> Path:
        """Make the starter model if it is not there yet; return its folder.

        `force`: even if the disk looks too full.
        """

    def download(
        self,
        repo_id: str,
        folder: Path,
        progress: ProgressCallback,
        cancel: CancelToken,
        *,
        force: bool = False,
    ) -> Path:
        """Download a model from the Hugging Face hub into `folder`; return the model's folder.

        `force`: even if the disk looks too full.
        """
