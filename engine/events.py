"""What a generation tells its caller while it runs: events, and the counters they carry. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

from engine.accounting import TimeSplit
from engine.pace import Pace


class Phase(IntEnum):
    """The two halves of a generation: reading the prompt, and writing the answer."""

    PREFILL = 0
    DECODE = 1


class Place(IntEnum):
    """Where an expert ran for a step: weights resident on the GPU, copied to it, on the CPU, or shared.

    SPLIT: the CPU ran one part of the expert while the other was copied to the GPU and run there.
    """

    GPU = 0
    STREAMED = 1
    CPU = 2
    SPLIT = 3


class FinishReason(StrEnum):
    """Why an answer ended."""

    EOS = "eos"  # the model ended its turn
    STOP_STRING = "stop_string"
    LENGTH = "length"  # max_tokens reached
    CONTEXT_FULL = "context_full"
    LOOP = "loop"  # the answer repeated itself and stop_loops was on
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class ExpertHits:
    """How many (layer, expert) executions ran where.

    `counts` has shape [2 phases, layers, experts, 4 places], int64; one execution is one expert with at least
    one token in one forward step, whatever its number of tokens.
    """

    counts: npt.NDArray[np.int64]

    @staticmethod
    def zeros(layers: int, experts: int) -> ExpertHits:
        """No hits yet, for a model of `layers` × `experts`."""
        return ExpertHits(np.zeros((len(Phase), layers, experts, len(Place)), dtype=np.int64))

    def total(self, place: Place, phase: Phase | None = None) -> int:
        """Executions at `place`, in one phase or in both."""
        counts = self.counts if phase is None else self.counts[phase : phase + 1]
        return int(counts[..., place].sum())


@dataclass(frozen=True)
class Prediction:
    """How well the latency model foretells layers. `error`: relative, +0.1 is 10 % too slow; None: unknown.

    `refits` is how often it was corrected since the model was loaded.
    """

    error: float | None = None
    refits: int = 0


@dataclass(frozen=True)
class GenerationStats:
    """Figures of one generation so far. Times in seconds; rates in tokens per second, 0 while unknown."""

    prompt_tokens: int = 0  # tokens of the whole prompt
    reused_tokens: int = 0  # of these, tokens whose keys and values were still in the cache
    generated_tokens: int = 0
    time_to_first_token: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    tokens_per_second: float = 0.0  # average over the decode so far
    tokens_per_second_now: float = 0.0  # over about the last second
    prefill_tokens_per_second: float = 0.0
    context_used: int = 0  # tokens in the KV cache
    context_length: int = 0  # its capacity
    seed: int | None = None
    hits: ExpertHits = field(default_factory=lambda: ExpertHits.zeros(0, 0))
    time: TimeSplit = field(default_factory=TimeSplit)  # where the decode steps' time went
    prediction_error: float | None = None  # see Prediction
    refits: int = 0
    pace: Pace = field(default_factory=Pace)  # when the answer's tokens came


@dataclass(frozen=True)
class TurnsDropped:
    """The conversation is too long: its first `messages` after the system prompt are not read.

    Comes before all other events of an answer, and only if there are such messages.
    """

    messages: int


@dataclass(frozen=True)
class PromptProgress:
    """`done` of `total` prompt tokens are in the cache, `reused` of them from the previous turn."""

    done: int
    total: int
    reused: int


@dataclass(frozen=True)
class TextDelta:
    """More answer text: whole characters only, never part of a stop string."""

    text: str


@dataclass(frozen=True)
class StatsUpdate:
    """The figures so far; sent about ten times a second."""

    stats: GenerationStats


@dataclass(frozen=True)
class Answer:
    """One of the answers that a beam search found.

    `score` is the logarithm of its likelihood over its length ** length_penalty; `tokens` counts all of it,
    with the token that ends it.
    """

    text: str
    score: float
    tokens: int
    reason: FinishReason


@dataclass(frozen=True)
class Finished:
    """The last event of every generation that did not raise.

    `message` is for the user; empty when nothing needs saying. `answers` are a beam search's, best first; the
    first is the text that was told.
    """

    reason: FinishReason
    stats: GenerationStats
    message: str = ""
    answers: tuple[Answer, ...] = ()


Event = TurnsDropped | PromptProgress | TextDelta | StatsUpdate | Finished
