"""Which messages of a conversation are sent to a model whose context they may have outgrown. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.params import GenerationParams, Message, OverflowPolicy

ANSWER_SHARE = 4  # a quarter of the context is kept free for the answer, where it may become as long


@dataclass(frozen=True)
class Sent:
    """What the model reads, and how many messages after the system prompt were left out before it."""

    messages: tuple[Message, ...]
    dropped: int = 0


def room_for_answer(params: GenerationParams, capacity: int) -> int:
    """Tokens of a context of `capacity` that a prompt leaves free where turns may be dropped for it."""
    return min(params.max_tokens * params.beams, capacity // ANSWER_SHARE)


def messages_to_send(
    messages: Sequence[Message],
    params: GenerationParams,
    capacity: int,
    count: Callable[[Sequence[Message]], int],
) -> Sent:
    """What of a conversation is read, by `params.overflow`; `count` tells how many tokens messages are.

    Nothing is dropped from a conversation that leaves room for the answer. Otherwise whole turns are, from
    the oldest on: a question goes with its answer, so that roles still alternate. The system prompt and the
    latest question, with what was begun as its answer, always stay, even if they alone are too long: then
    reading them raises PromptTooLongError, as a conversation does that nothing may be dropped from.
    """
    everything = tuple(messages)
    if params.overflow is OverflowPolicy.STOP:
        return Sent(everything)
    system = tuple(message for message in everything if message.role == "system")
    turns = tuple(message for message in everything if message.role != "system")
    begins = [0, *(place for place, message in enumerate(turns) if message.role == "user" and place)]
    limit = capacity - room_for_answer(params, capacity)

    def fits(begin: int) -> bool:
        return count((*system, *turns[begin:])) <= limit

    if len(begins) == 1 or fits(0):
        return Sent(everything)
    if params.overflow is OverflowPolicy.KEEP_LATEST:
        first = begins[-1]
    else:
        # The later it begins, the shorter it is; the last is taken without a look.
        first = begins[bisect_left(begins, True, 1, len(begins) - 1, key=fits)]
    return Sent((*system, *turns[first:]), first)
