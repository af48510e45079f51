"""Amounts, speeds and durations in words, through `tr`. Memory and files alike in GiB."""

from __future__ import annotations

from app.i18n import tr, tr_count
from engine.progress import Progress
from engine.units import format_bytes

BYTE_UNITS = ("B", "bytes", "byte")


def duration(seconds: float) -> str:
    """About how long: "a few seconds", "40 seconds", "about 3 minutes", "about 2 h 10 min"."""
    if seconds < 5:
        return tr("a few seconds")
    if seconds < 90:
        return tr("{count} seconds", count=5 * max(1, round(seconds / 5)))
    minutes = round(seconds / 60)
    if minutes < 60:
        return tr_count("about {count} minute", "about {count} minutes", minutes)
    hours, minutes = divmod(5 * round(minutes / 5), 60)
    if not minutes:
        return tr("about {hours} h", hours=hours)
    return tr("about {hours} h {minutes} min", hours=hours, minutes=minutes)


def amount(value: float, unit: str) -> str:
    """A number with its unit; bytes in the largest that fits."""
    if unit in BYTE_UNITS:
        return format_bytes(value)
    number = f"{value:.0f}" if value == int(value) else f"{value:.1f}"
    return f"{number} {unit}".strip()


def progress_details(progress: Progress, rate: float | None, seconds_left: float | None) -> str:
    """The line under a progress bar: how far, how fast, how much longer."""
    parts = []
    if progress.total > 0 and progress.unit:
        counted = progress.unit not in BYTE_UNITS  # layers, probes: whole ones
        done = f"{int(progress.done)}" if counted else amount(progress.done, progress.unit)
        total = amount(progress.total, progress.unit)
        parts.append(tr("{done} of {total}", done=done, total=total))
    elif progress.total <= 0 and progress.done > 0:
        parts.append(amount(progress.done, progress.unit))
    if rate is not None and progress.unit in BYTE_UNITS:
        parts.append(tr("{amount} per second", amount=amount(rate, progress.unit)))
    if seconds_left is not None:
        parts.append(tr("{time} left", time=duration(seconds_left)))
    return " · ".join(parts)
