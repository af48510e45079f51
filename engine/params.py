"""What a caller asks of a generation: messages, sampling, length, stopping. Checked on creation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from engine.errors import GenerationError

Role = Literal["system", "user", "assistant"]
MAX_TOGETHER = 16  # sequences that the decode kernels of a GPU continue together
MAX_LENGTH_PENALTY = 5.0  # beyond, powers of long answers' lengths leave the range of float32 scores


class OverflowPolicy(StrEnum):
    """What happens to a conversation that has outgrown the model's context; see `engine.context`."""

    STOP = "stop"  # nothing is left out: the answer ends where the context is full
    DROP_OLDEST = "drop_oldest"  # as few of the oldest turns as possible are left out
    KEEP_LATEST = "keep_latest"  # all but the system prompt and the latest question is left out


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen. `temperature=0` is greedy.

    The filters apply in the order repetition penalty, temperature, top-k, top-p, min-p, as in transformers'
    logits processors. `top_k=0`, `top_p=1`, `min_p=0` and `repetition_penalty=1` switch a filter off.
    `seed=None` draws a fresh seed, which the finished event reports.
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        checks = (
            (0 <= self.temperature <= 10, "temperature", self.temperature, "from 0 (greedy) to 10"),
            (isinstance(self.top_k, int) and self.top_k >= 0, "top_k", self.top_k, "0 (off) or more, whole"),
            (0 < self.top_p <= 1, "top_p", self.top_p, "above 0 and at most 1 (off)"),
            (0 <= self.min_p < 1, "min_p", self.min_p, "from 0 (off) to below 1"),
            (
                0 < self.repetition_penalty <= 10,
                "repetition_penalty",
                self.repetition_penalty,
                "above 0, 1 is off",
            ),
            (self.seed is None or 0 <= self.seed < 2**63, "seed", self.seed, "from 0 to 2^63 - 1"),
        )
        for holds, name, value, allowed in checks:
            if not holds:
                raise GenerationError(f"{name} cannot be {value}.", action=f"Choose a value {allowed}.")

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken."""
        return self.temperature == 0


@dataclass(frozen=True)
class GenerationParams:
    """One request: sampling, the most tokens to generate, and what ends the answer early.

    `stop` strings end the answer and are not part of it. `stop_loops` ends an answer that repeats itself
    (small models need it); `ignore_eos` is for measurements only.

    More than one of `beams` is beam search: so many answers are continued together, the likeliest wins, and
    of `sampling` only the repetition penalty applies. An answer's score is the logarithm of its likelihood
    divided by its length ** `length_penalty`: 0 compares as it is, which favours short answers, 1 per token,
    more favours long ones. `early_stopping` ends as soon as there are as many finished answers as beams,
    without looking whether a better one could come. The best `answers` are told at the end.

    `overflow` decides what is left out of a conversation that is too long; raw text is never cut.
    """

    sampling: SamplingParams = SamplingParams()
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    stop_loops: bool = False
    ignore_eos: bool = False
    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    answers: int = 1
    overflow: OverflowPolicy = OverflowPolicy.STOP

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise GenerationError(f"max_tokens cannot be {self.max_tokens}.", action="Choose 1 or more.")
        if not 1 <= self.beams <= MAX_TOGETHER:
            raise GenerationError(
                f"beams cannot be {self.beams}.", action=f"Choose from 1 to {MAX_TOGETHER}."
            )
        if not 1 <= self.answers <= self.beams:
            raise GenerationError(
                f"answers cannot be {self.answers}.",
                action=f"Choose from 1 to the number of beams, {self.beams}.",
            )
        if not -MAX_LENGTH_PENALTY <= self.length_penalty <= MAX_LENGTH_PENALTY:  # false for nan too
            raise GenerationError(
                f"length_penalty cannot be {self.length_penalty}.",
                action=f"Choose a value from -{MAX_LENGTH_PENALTY} to {MAX_LENGTH_PENALTY}.",
            )
        if any(not text for text in self.stop):
            raise GenerationError("A stop string cannot be empty.", action="Remove the empty stop string.")
