"""How answers are drawn, and how long they may be."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Option

_MAX_SEED = 2**63 - 1

USE_MODEL_DEFAULTS = Option(
    "sampling.use_model_defaults",
    True,
    tr_noop("Use the model's own values"),
    tr_noop("Models come with values that suit them. Turn this off to use the values below instead."),
    synonyms_text=tr_noop("recommended defaults generation config"),
)
TEMPERATURE = Option(
    "sampling.temperature",
    0.7,
    tr_noop("Temperature"),
    tr_noop("Higher is more varied, lower more predictable. 0 always takes the most likely word."),
    minimum=0,
    maximum=10,
    synonyms_text=tr_noop("creativity randomness greedy"),
)
TOP_K = Option(
    "sampling.top_k",
    0,
    tr_noop("Top-k"),
    tr_noop("Choose among this many of the most likely next words only. 0 is no limit."),
    minimum=0,
    maximum=1_000_000,
    synonyms_text=tr_noop("sampling randomness candidates"),
)
TOP_P = Option(
    "sampling.top_p",
    1.0,
    tr_noop("Top-p"),
    tr_noop("Choose among the likeliest words that together have this probability. 1 is no limit."),
    minimum=0.01,
    maximum=1,
    synonyms_text=tr_noop("nucleus sampling randomness probability"),
)
MIN_P = Option(
    "sampling.min_p",
    0.0,
    tr_noop("Min-p"),
    tr_noop("Leave out words less likely than this share of the likeliest one's probability. 0 is off."),
    minimum=0,
    maximum=0.99,
    synonyms_text=tr_noop("sampling randomness probability"),
)
REPETITION_PENALTY = Option(
    "sampling.repetition_penalty",
    1.0,
    tr_noop("Repetition penalty"),
    tr_noop("Above 1, words that have occurred become less likely. 1 is off."),
    minimum=0.01,
    maximum=10,
    synonyms_text=tr_noop("repeat loops frequency"),
)
SEED = Option(
    "sampling.seed",
    -1,
    tr_noop("Seed"),
    tr_noop("The same seed gives the same answer again. −1 draws a new one for each answer."),
    minimum=-1,
    maximum=_MAX_SEED,
    synonyms_text=tr_noop("reproduce random same answer"),
)
MAX_TOKENS = Option(
    "sampling.max_tokens",
    1024,
    tr_noop("Longest answer"),
    tr_noop("An answer ends after this many tokens (a token is about three quarters of a word)."),
    minimum=1,
    maximum=1_000_000,
    synonyms_text=tr_noop("length limit maximum long short words"),
)
