"""What every readable format says about a chat and its messages besides their texts."""

from __future__ import annotations

from datetime import datetime, tzinfo

from app.answers import figures, sampling_words, search_words
from app.attachments.form import Attachment
from app.export.options import ExportOptions
from app.export.outline import Entry
from app.i18n import tr, tr_count
from app.storage.figures import params_from_json, stats_from_json
from app.storage.rows import Conversation, MessageRow, MessageState
from engine.events import GenerationStats, Place


def time_text(moment: datetime, zone: tzinfo | None) -> str:
    """`2026-01-02 03:04` in `zone` (None: the computer's own)."""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def origin(conversation: Conversation, zone: tzinfo | None) -> str:
    """Which model the chat is with, and when it was begun."""
    began = time_text(conversation.created, zone)
    if conversation.model:
        return tr("With {model}, begun {time}.", model=conversation.model, time=began)
    return tr("Begun {time}.", time=began)


def speaker(message: MessageRow) -> str:
    """Who wrote a message."""
    return {"user": tr("You"), "assistant": tr("Assistant"), "system": tr("System")}[message.role]


def file_words(file: Attachment) -> str:
    """An attached file's name and length."""
    lines = tr_count("{count} line", "{count} lines", file.lines)
    return tr("Attached file {name}, {lines}", name=file.name, lines=lines)


def headline(entry: Entry, zone: tzinfo | None) -> str:
    """Who wrote a message and when, and which of several versions it is."""
    text = tr("{who}, {time}", who=speaker(entry.message), time=time_text(entry.message.created, zone))
    which = version(entry)
    return tr("{headline} ({version})", headline=text, version=which) if which else text


def version(entry: Entry) -> str:
    """Which of several versions a message is; empty for the only one, unless it was taken back."""
    if entry.versions == 1:
        return tr("taken back") if entry.begins else ""
    return tr("version {number} of {count}", number=entry.version, count=entry.versions)


def remarks(message: MessageRow, options: ExportOptions) -> list[str]:
    """How a message ended if not as usual, and an answer's figures and settings where they are wanted."""
    found = [_state(message.state), message.note]
    if message.role == "assistant":
        if message.seen_from is not None:
            found.append(tr("Written without the earliest messages: they no longer fitted the context."))
        if options.statistics:
            found.append(_figures(message))
        if options.settings:
            found.append(_parameters(message))
    return [remark for remark in found if remark]


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
    if params.beams > 1:
        return search_words(params.beams)
    seed = None if message.stats is None else stats_from_json(message.stats).seed
    used = seed if params.sampling.seed is None else params.sampling.seed
    return ", ".join(sampling_words(params.sampling, used))
