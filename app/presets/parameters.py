"""What decides how a chat is answered, besides its system prompt: one value each, checked by its range."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from app.i18n import tr_noop
from app.settings.option import Choice, Option
from engine.params import MAX_TOGETHER, GenerationParams, OverflowPolicy, SamplingParams

TEMPERATURE = Option(
    "parameters.temperature",
    0.7,
    tr_noop("Temperature"),
    tr_noop("Higher is more varied, lower more predictable. 0 always takes the most likely word."),
    minimum=0,
    maximum=10,
)
TOP_K = Option(
    "parameters.top_k",
    0,
    tr_noop("Top-k"),
    tr_noop("Choose among this many of the most likely next words only. 0 is no limit."),
    minimum=0,
    maximum=1_000_000,
)
TOP_P = Option(
    "parameters.top_p",
    1.0,
    tr_noop("Top-p"),
    tr_noop("Choose among the likeliest words that together have this probability. 1 is no limit."),
    minimum=0.01,
    maximum=1,
)
MIN_P = Option(
    "parameters.min_p",
    0.0,
    tr_noop("Min-p"),
    tr_noop("Leave out words less likely than this share of the likeliest one's probability. 0 is off."),
    minimum=0,
    maximum=0.99,
)
REPETITION_PENALTY = Option(
    "parameters.repetition_penalty",
    1.0,
    tr_noop("Repetition penalty"),
    tr_noop("Above 1, words that have occurred become less likely. 1 is off."),
    minimum=0.01,
    maximum=10,
)
SEED = Option(
    "parameters.seed",
    0,
    tr_noop("Seed"),
    tr_noop("The same seed gives the same answer again. Empty draws a new one for each answer."),
    minimum=0,
    maximum=2**63 - 1,
)
MAX_TOKENS = Option(
    "parameters.max_tokens",
    1024,
    tr_noop("Longest answer"),
    tr_noop("An answer ends after this many tokens (a token is about three quarters of a word)."),
    minimum=1,
    maximum=1_000_000,
)
BEAMS = Option(
    "parameters.beams",
    1,
    tr_noop("Beams"),
    tr_noop("Above 1, so many beginnings are followed together, and the likeliest whole answer wins."),
    minimum=1,
    maximum=MAX_TOGETHER,
)
ANSWERS = Option(
    "parameters.answers",
    1,
    tr_noop("Answers"),
    tr_noop("So many answers to each question, as versions between which you choose."),
    minimum=1,
    maximum=MAX_TOGETHER,
)
OVERFLOW = Option(
    "parameters.overflow",
    OverflowPolicy.STOP.value,
    tr_noop("When the chat outgrows the context"),
    tr_noop("The context is what the model can see at once. Your chat itself is always kept whole."),
    choices=(
        Choice(OverflowPolicy.STOP, tr_noop("Stop, and say so")),
        Choice(OverflowPolicy.DROP_OLDEST, tr_noop("Leave out the oldest turns")),
        Choice(OverflowPolicy.KEEP_LATEST, tr_noop("Keep the system prompt and the latest question")),
    ),
)

OPTIONS: tuple[Option[Any], ...] = (
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    REPETITION_PENALTY,
    SEED,
    MAX_TOKENS,
    BEAMS,
    ANSWERS,
    OVERFLOW,
)
BY_NAME: dict[str, Option[Any]] = {option.name: option for option in OPTIONS}
_OPTIONAL = frozenset(option.name for option in OPTIONS[:7])


@dataclass(frozen=True)
class Parameters:
    """None is the model's own value, and for the seed a new one for each answer. Checked on creation.

    Raises `SettingsError` for a value that is not allowed.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    beams: int = 1
    answers: int = 1
    overflow: OverflowPolicy = OverflowPolicy.STOP

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and may_be_none(field.name):
                continue
            option = BY_NAME[field.name]
            checked = option.check(str(value) if isinstance(value, OverflowPolicy) else value)
            object.__setattr__(self, field.name, OverflowPolicy(checked) if option is OVERFLOW else checked)


def may_be_none(name: str) -> bool:
    """Whether a parameter can be left to the model (or, for the seed, to chance)."""
    return name in _OPTIONAL


def generation_params(parameters: Parameters, defaults: GenerationParams) -> GenerationParams:
    """How the engine is to write an answer, with the model's values where none are set.

    What ends an answer (stop strings, loops) stays the model's.
    """
    chosen = {
        field.name: value
        for field in fields(SamplingParams)
        if field.name != "seed" and (value := getattr(parameters, field.name)) is not None
    }
    beams = parameters.beams
    return replace(
        defaults,
        sampling=replace(defaults.sampling, **chosen, seed=parameters.seed),
        max_tokens=parameters.max_tokens or defaults.max_tokens,
        beams=beams,
        answers=min(parameters.answers, beams),
        overflow=parameters.overflow,
    )


def answers_together(parameters: Parameters, params: GenerationParams) -> int:
    """How many answers are drawn together: a search finds its own, and greedy ones are alike."""
    return 1 if params.beams > 1 or params.sampling.greedy else parameters.answers
