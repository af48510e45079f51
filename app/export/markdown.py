"""A conversation as Markdown: a document that reads well in any viewer, whatever the messages contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

from app.answers import figures, sampling_words
from app.i18n import tr
from app.storage.figures import params_from_json, stats_from_json
from app.storage.rows import Conversation, MessageRow, MessageState
from engine.events import GenerationStats, Place

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
# What begins raw HTML that ends only at its own end mark: unclosed, it would swallow what follows.
_RAW_HTML = re.compile(r" {0,3}<(?:!--|\?|!\[CDATA\[|![A-Z]|(?:script|pre|style|textarea)\b)", re.IGNORECASE)


def to_markdown(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    *,
    system_prompt: bool = True,
    statistics: bool = True,
    zone: tzinfo | None = None,
) -> str:
    """The active messages under headings; times in `zone` (None: the computer's own).

    `statistics` adds a line under each answer: tokens, speed, where the experts ran, and its parameters.
    """
    parts = [f"# {escape(conversation.title)}", _origin(conversation, zone)]
    if system_prompt and conversation.system_prompt:
        parts += [f"## {tr('System prompt')}", contained(conversation.system_prompt)]
    for message in messages:
        if message.active:
            parts += _message(message, statistics, zone)
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def contained(text: str) -> str:
    """Markdown `text` that cannot reach past its own end: open code blocks are closed, raw HTML is shown."""
    lines: list[str] = []
    fence = indent = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found:
            fence, indent = found[1], line[: found.start(1)]
        elif _RAW_HTML.match(line):
            line = line.replace("<", "\\<", 1)
        lines.append(line)
    if fence:
        lines.append(indent + fence)  # indented as it was opened: perhaps inside a list
    return "\n".join(lines).strip("\n")


def _origin(conversation: Conversation, zone: tzinfo | None) -> str:
    began = _time(conversation.created, zone)
    if conversation.model:
        return tr("*With {model}, begun {time}.*", model=escape(conversation.model), time=began)
    return tr("*Begun {time}.*", time=began)


def _message(message: MessageRow, statistics: bool, zone: tzinfo | None) -> list[str]:
    names = {"user": tr("You"), "assistant": tr("Assistant"), "system": tr("System")}
    parts = [f"## {names[message.role]}, {_time(message.created, zone)}"]
    if message.content:
        parts.append(contained(message.content))
    remarks = [_state(message.state), escape(message.note)]
    if statistics and message.role == "assistant":
        remarks += [_figures(message), _parameters(message)]
    parts += [f"*{remark}*" for remark in remarks if remark]
    return parts


def _state(state: MessageState) -> str:
    texts = {
        MessageState.STREAMING: tr("This answer was still being written."),
        MessageState.INTERRUPTED: tr("This answer was interrupted: the program ended before it did."),
        MessageState.STOPPED: tr("This answer was stopped."),
        MessageState.ERROR: tr("This answer ended with an error."),
    }
    return texts.get(state, "")


def _figures(message: MessageRow) -> str:
    if message.stats is None:
        return ""
    stats = stats_from_json(message.stats)
    return ", ".join(figures(stats) + _shares(stats))


def _shares(stats: GenerationStats) -> list[str]:
    """Where the experts ran, in whole percent."""
    counts = {place: stats.hits.total(place) for place in Place}
    whole = sum(counts.values())
    if not whole:
        return []
    gpu, streamed, cpu, split = (f"{counts[place] / whole:.0%}" for place in Place)
    text = tr(
        "experts: {gpu} on the GPU, {streamed} streamed, {cpu} on the CPU",
        gpu=gpu,
        streamed=streamed,
        cpu=cpu,
    )
    if counts[Place.SPLIT]:
        text += tr(", {split} shared by both", split=split)
    return [text]


def _parameters(message: MessageRow) -> str:
    params = None if message.params is None else params_from_json(message.params)
    if params is None:
        return ""
    seed = None if message.stats is None else stats_from_json(message.stats).seed
    used = seed if params.sampling.seed is None else params.sampling.seed
    return ", ".join(sampling_words(params.sampling, used))


def _time(moment: datetime, zone: tzinfo | None) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
