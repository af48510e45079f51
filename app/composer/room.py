"""Whether a message fits into the model's context, in figures and in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import tr, tr_count
from engine.params import OverflowPolicy

_SCARCE = 16  # less than this part of the context is little room for an answer


@dataclass(frozen=True)
class Room:
    """Tokens: of the message that is written, of the chat before it, and of what surrounds both.

    `frame` is what is read in any case, such as the system prompt; `chat` may be left out where `overflow`
    says so, to leave `reserve` for the answer (`engine.context`).
    """

    message: int
    chat: int
    frame: int
    context: int
    overflow: OverflowPolicy = OverflowPolicy.STOP
    reserve: int = 0

    @property
    def total(self) -> int:
        """What there would be to read."""
        return self.message + self.chat + self.frame

    @property
    def message_fits(self) -> bool:
        """Whether the message could be answered in a chat of its own."""
        return self.message + self.frame < self.context

    @property
    def fits(self) -> bool:
        """Whether the message can be sent."""
        return self.message_fits if self.overflow is not OverflowPolicy.STOP else self.total < self.context

    @property
    def scarce(self) -> bool:
        """Whether it fits and leaves little room for an answer."""
        left = self.context - self.total
        return self.overflow is OverflowPolicy.STOP and 0 < left < self.context // _SCARCE

    @property
    def drops(self) -> bool:
        """Whether the beginning of the chat would be left out."""
        may = self.overflow is not OverflowPolicy.STOP and self.chat > 0
        return may and self.fits and self.total > self.context - self.reserve


def line(room: Room) -> str:
    """`312 of 4,096 tokens`, and in words what is wrong with it."""
    counts = tr("{used} of {context} tokens", used=f"{room.total:,}", context=f"{room.context:,}")
    if not room.fits:
        return tr("{counts}: too long", counts=counts)
    if room.drops:
        return tr("{counts}: the beginning is left out", counts=counts)
    if room.scarce:
        return tr("{counts}: little room for an answer", counts=counts)
    return counts


def explanation(room: Room) -> str:
    """What the figures are made of."""
    return "\n".join(
        (
            tr("This message: {n}", n=f"{room.message:,}"),
            tr("The chat before it: {n}", n=f"{room.chat:,}"),
            tr("System prompt and the model's own signs: {n}", n=f"{room.frame:,}"),
            tr("The model reads and writes {n} tokens at most.", n=f"{room.context:,}"),
        )
    )


def refusal(room: Room, files: int) -> str:
    """Why the message cannot be sent, and what to do; empty if it can. `files`: how many are attached."""
    if room.fits:
        return ""
    total, context = f"{room.total:,}", f"{room.context:,}"
    if not room.message_fits:
        what = tr(
            "The message is too long for this model: {n} tokens, and there is room for {context}.",
            n=f"{room.message:,}",
            context=f"{max(0, room.context - room.frame - 1):,}",
        )
        if files:
            remedy = tr_count(
                "Remove the file or attach a part of it", "Remove a file or attach parts", files
            )
        else:
            remedy = tr("Shorten it")
        return tr("{what} {remedy}, or load the model with a longer context.", what=what, remedy=remedy)
    what = tr(
        "The chat with this message is too long for the model: {n} tokens of {context}.",
        n=total,
        context=context,
    )
    return tr(
        "{what} Send it in a new chat, shorten it, or let earlier messages give way (Parameters, above the "
        "chat). It stays here until then.",
        what=what,
    )
