"""An answer's figures, and how its words were chosen, as short texts. Pure; every window says them alike."""

from __future__ import annotations

from app.i18n import tr, tr_count
from engine.events import GenerationStats
from engine.params import SamplingParams


def figures(stats: GenerationStats) -> list[str]:
    """`48 tokens`, `41.5 tokens/s`, `first after 0.3 s`; nothing for an answer without a token."""
    if stats.generated_tokens == 0:
        return []
    parts = [token_words(stats.generated_tokens)]
    if stats.tokens_per_second > 0:
        parts.append(tr("{rate} tokens/s", rate=short_number(stats.tokens_per_second)))
    if stats.time_to_first_token > 0:
        parts.append(tr("first after {seconds}", seconds=short_seconds(stats.time_to_first_token)))
    return parts


def sampling_words(sampling: SamplingParams, seed: int | None = None) -> list[str]:
    """What decides the next word: the filters that are on, and the seed unless the choice is greedy."""
    parts = []
    if sampling.greedy:
        parts.append(tr("always the most likely word"))
    else:
        parts.append(tr("temperature {value}", value=f"{sampling.temperature:g}"))
        filters = (
            ("top-k", sampling.top_k, 0),
            ("top-p", sampling.top_p, 1),
            ("min-p", sampling.min_p, 0),
        )
        parts += [f"{name} {value:g}" for name, value, off in filters if value != off]
        if seed is not None:
            parts.append(tr("seed {seed}", seed=seed))
    if sampling.repetition_penalty != 1:
        parts.append(tr("repetition penalty {value}", value=f"{sampling.repetition_penalty:g}"))
    return parts


def search_words(beams: int) -> str:
    """`beam search with 4 beams`."""
    return tr_count("beam search with {count} beam", "beam search with {count} beams", beams)


def token_words(count: int) -> str:
    """`1 token`, `1,024 tokens`."""
    return tr_count("{amount} token", "{amount} tokens", count, amount=f"{count:,}")


def short_number(value: float) -> str:
    """Three significant digits at most: 0.42, 4.2, 42.1, 421."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def percent_words(fraction: float) -> str:
    """A part of a whole (0 to 1): "0%", "under 1%", "43%"."""
    if 0 < fraction < 0.005:
        return tr("under 1%")
    return tr("{n}%", n=round(100 * fraction))


def short_seconds(seconds: float) -> str:
    """A duration in the unit that reads best: 640 µs, 3.1 ms, 85 ms, 1.4 s, 3 min 20 s."""
    if seconds < 0.00095:
        return tr("{n} µs", n=round(seconds * 1e6))
    if seconds < 0.00995:
        return tr("{n} ms", n=f"{seconds * 1000:.1f}")
    if seconds < 0.0995:
        return tr("{n} ms", n=round(seconds * 1000))
    if seconds < 99.5:
        return tr("{n} s", n=f"{seconds:.1f}")
    minutes, rest = divmod(round(seconds), 60)
    return tr("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
