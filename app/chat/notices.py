"""What is said below a message about how it ended, and what can be done about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.i18n import tr
from app.storage.figures import stats_from_json
from app.storage.rows import MessageRow, MessageState
from engine.events import FinishReason, GenerationStats


class Action(StrEnum):
    """What a button below a message asks for."""

    REGENERATE = "regenerate"
    NEW_CHAT = "new_chat"
    CALIBRATE = "calibrate"


@dataclass(frozen=True)
class MessageNotice:
    """A strip below a message. `tone` is "info", "warning" or "error"; `action` may be None."""

    tone: str
    text: str
    action: Action | None = None
    label: str = ""  # of the action's button


def notice_for(row: MessageRow) -> MessageNotice | None:
    """The strip for a message as it was saved; None for one that simply ended."""
    if row.state is MessageState.INTERRUPTED:
        text = tr("The program ended while this answer was being written. What you see was saved in time.")
        return MessageNotice("warning", text, Action.REGENERATE, tr("Regenerate"))
    if row.state is MessageState.ERROR:
        text = row.note or tr("The answer could not be written.")
        return MessageNotice("error", text, Action.REGENERATE, tr("Try again"))
    if row.reason == FinishReason.CONTEXT_FULL:
        text = row.note or tr("The conversation fills the model's context: there is no room for more text.")
        hint = tr("A new chat starts with an empty context; this one stays as it is.")
        return MessageNotice("warning", f"{text} {hint}", Action.NEW_CHAT, tr("New chat"))
    if row.state is MessageState.STOPPED:
        return MessageNotice("info", tr("You stopped this answer."))
    if row.note:
        return MessageNotice("info", row.note)
    if row.reason == FinishReason.LENGTH:
        return MessageNotice("info", tr("The answer reached the longest length allowed in the settings."))
    if row.reason == FinishReason.LOOP:
        return MessageNotice("info", tr("The model began to repeat itself, so the answer was ended here."))
    return None


def figures_line(row: MessageRow) -> str:
    """A short line of figures of an answer; empty when there are none."""
    if row.stats is None:
        return ""
    return describe(stats_from_json(row.stats))


def describe(stats: GenerationStats) -> str:
    """`48 tokens · 41.5 tokens/s · first after 0.3 s`."""
    if stats.generated_tokens == 0:
        return ""
    parts = [tr("1 token") if stats.generated_tokens == 1 else tr("{n} tokens", n=stats.generated_tokens)]
    if stats.tokens_per_second > 0:
        parts.append(tr("{rate} tokens/s", rate=short_number(stats.tokens_per_second)))
    if stats.time_to_first_token > 0:
        parts.append(tr("first after {seconds}", seconds=short_seconds(stats.time_to_first_token)))
    return " · ".join(parts)


def short_number(value: float) -> str:
    """Three significant digits at most: 0.42, 4.2, 42.1, 421."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def short_seconds(seconds: float) -> str:
    """A duration in the unit that reads best: 85 ms, 1.4 s, 3 min 20 s."""
    if seconds < 0.0995:
        return tr("{n} ms", n=round(seconds * 1000))
    if seconds < 99.5:
        return tr("{n} s", n=f"{seconds:.1f}")
    minutes, rest = divmod(round(seconds), 60)
    return tr("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
