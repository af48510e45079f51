"""What is said about an import: what was taken, what was there already, what was left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.i18n import tr, tr_count
from app.importing.outcome import LeftOut, Refused
from engine.errors import EngineError

_MOST_REFUSED = 8  # that are listed on the screen; the copied details have all


@dataclass(frozen=True)
class Imported:
    """What an import did. `error` ended it early; so did the user where it is `cancelled`."""

    chats: tuple[int, ...] = ()  # ids, the newest last
    messages: int = 0
    skipped: int = 0  # that were there already
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    waiting: int = 0  # that were not come to
    error: EngineError | None = None
    cancelled: bool = False

    @property
    def complete(self) -> bool:
        """Whether everything in the files was taken."""
        return not (self.skipped or self.refused or self.waiting or any(self.left_out.values()))


def taken_words(imported: Imported) -> str:
    """How many chats and messages there are more now."""
    if not imported.chats:
        return tr("No chat was imported.")
    chats = tr_count("{count} chat", "{count} chats", len(imported.chats))
    messages = tr_count("{count} message", "{count} messages", imported.messages)
    return tr("Imported: {chats}, {messages}.", chats=chats, messages=messages)


def missing_words(imported: Imported, *, most: int = _MOST_REFUSED) -> list[str]:
    """A paragraph for each kind of thing that was not taken."""
    found = []
    if imported.waiting:
        found.append(_ended_early(imported))
    if imported.skipped:
        found.append(
            tr_count(
                "{count} chat was here already and was not imported again.",
                "{count} chats were here already and were not imported again.",
                imported.skipped,
            )
        )
    left_out = [_left_out(kind, imported.left_out.get(kind, 0)) for kind in LeftOut]
    if any(left_out):
        found.append(tr("Not taken over: {things}.", things=", ".join(filter(None, left_out))))
    if imported.refused:
        found.append(_refused_words(imported.refused, most))
    return found


def _ended_early(imported: Imported) -> str:
    rest = tr_count("{count} chat was", "{count} chats were", imported.waiting)
    if imported.error is not None:
        return tr("Then {rest} not saved. {error}", rest=rest, error=imported.error)
    return tr("You cancelled: {rest} not imported.", rest=rest)


def _refused_words(refused: tuple[Refused, ...], most: int) -> str:
    count = tr_count(
        "{count} file or chat could not be imported:",
        "{count} files or chats could not be imported:",
        len(refused),
    )
    lines = [tr("• {name}: {why}", name=item.name, why=item.why) for item in refused[:most]]
    if len(refused) > most:
        lines.append(tr("… and {count} more; “Copy details” has all.", count=len(refused) - most))
    return "\n".join([count, *lines])


def _left_out(kind: LeftOut, count: int) -> str:
    if not count:
        return ""
    if kind is LeftOut.PICTURES:
        return tr_count("{count} picture", "{count} pictures", count)
    if kind is LeftOut.FILES:
        return tr_count("{count} attached file", "{count} attached files", count)
    if kind is LeftOut.TOOLS:
        return tr_count("{count} message of a tool", "{count} messages of tools", count)
    if kind is LeftOut.REASONING:
        return tr_count("{count} note of the model to itself", "{count} notes of the model to itself", count)
    if kind is LeftOut.HIDDEN:
        return tr_count("{count} hidden instruction", "{count} hidden instructions", count)
    return tr_count("{count} other thing that is no text", "{count} other things that are no text", count)
