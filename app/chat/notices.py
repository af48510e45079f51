"""What is said below a message about how it ended, and what can be done about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.answers import figures, sampling_words, search_words
from app.chat.again import params_again
from app.i18n import tr
from app.panel.time_parts import largest, time_parts
from app.storage.errors import Notice
from app.storage.figures import stats_from_json
from app.storage.rows import MessageRow, MessageState
from engine.events import FinishReason, GenerationStats
from engine.params import OverflowPolicy


class Action(StrEnum):
    """What a button below a message asks for."""

    REGENERATE = "regenerate"
    CONTINUE = "continue"
    DELETE = "delete"  # the question and its answer
    SHOW_VERSION = "show_version"  # the message id is the other version's
    NEW_CHAT = "new_chat"
    CALIBRATE = "calibrate"
    ABOUT = "about"  # the message: how it was written
    AGAIN = "again"  # the same answer, with its own seed and parameters
    PARAMETERS = "parameters"  # of the chat
    DETAILS = "details"


@dataclass(frozen=True)
class MessageNotice:
    """A strip with a sentence. `tone` is "info", "warning" or "error"; `action` may be None."""

    tone: str
    text: str
    action: Action | None = None
    label: str = ""  # of the action's button


def notice_for(row: MessageRow) -> MessageNotice | None:
    """The strip for a message as it was saved; None for one that simply ended."""
    if row.state is MessageState.INTERRUPTED:
        text = tr("The program ended while this answer was being written. What you see was saved in time.")
        if row.content.strip():  # the other way is a button below the answer
            return MessageNotice("warning", text, Action.CONTINUE, tr("Continue"))
        return MessageNotice("warning", text, Action.REGENERATE, tr("Regenerate"))
    if row.state is MessageState.ERROR:
        text = row.note or tr("The answer could not be written.")
        if row.reason == FinishReason.CONTEXT_FULL:  # trying again would only fail again
            if _may_drop(row):
                return MessageNotice("error", text, Action.NEW_CHAT, tr("New chat"))
            hint = tr("Or let earlier messages give way from now on.")
            return MessageNotice("error", f"{text} {hint}", Action.PARAMETERS, tr("Parameters…"))
        return MessageNotice("error", text, Action.REGENERATE, tr("Try again"))
    if row.reason == FinishReason.CONTEXT_FULL:
        text = row.note or tr("The conversation fills the model's context: there is no room for more text.")
        if _may_drop(row):
            return MessageNotice("warning", text, Action.CONTINUE, tr("Continue"))
        hint = tr("A new chat starts with an empty context; this one stays as it is.")
        return MessageNotice("warning", f"{text} {hint}", Action.NEW_CHAT, tr("New chat"))
    if row.state is MessageState.STOPPED:
        return MessageNotice("info", tr("You stopped this answer."))
    if row.reason == FinishReason.LENGTH:  # its note says how long, not that it can go on
        text = row.note or tr("The answer reached the longest length that its parameters allow.")
        return MessageNotice("info", text, Action.CONTINUE, tr("Continue"))
    if row.note:
        return MessageNotice("info", row.note)
    if row.reason == FinishReason.LOOP:
        return MessageNotice("info", tr("The model began to repeat itself, so the answer was ended here."))
    return None


def notice_of(told: Sequence[Notice]) -> MessageNotice:
    """The strip for what happened to the user's data, one line each; a warning unless all of it is good."""
    text = "\n".join(str(notice) for notice in told)
    return MessageNotice("info" if all(notice.good for notice in told) else "warning", text)


def _may_drop(row: MessageRow) -> bool:
    """Whether the answer was asked for with earlier messages giving way where the context is full."""
    policy: object = (row.params or {}).get("overflow", OverflowPolicy.STOP)
    return policy != OverflowPolicy.STOP


def figures_line(row: MessageRow) -> str:
    """A short line of figures of an answer; empty when there are none."""
    parts = [] if row.stats is None else [describe(stats_from_json(row.stats, hits=False))]
    if row.seen_from is not None:
        parts.append(tr("without earlier messages"))
    return " · ".join(part for part in parts if part)


def figures_tip(row: MessageRow) -> str:
    """The same with where most of its time went, and how its words were drawn."""
    if row.stats is None:
        return ""
    stats = stats_from_json(row.stats, hits=False)
    spent = largest(time_parts(stats.time))
    return "\n".join(line for line in (describe(stats), spent, _drawn(row)) if line)


def _drawn(row: MessageRow) -> str:
    params = params_again(row)
    if params is None:
        return ""
    if params.beams > 1:
        return search_words(params.beams)
    return ", ".join(sampling_words(params.sampling, params.sampling.seed))


def describe(stats: GenerationStats) -> str:
    """`48 tokens · 41.5 tokens/s · first after 0.3 s`."""
    return " · ".join(figures(stats))
