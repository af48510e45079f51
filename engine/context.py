"""Which messages of a conversation are sent to a model whose context they may have outgrown. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.params import GenerationParams, Message, OverflowPolicy

# What is dropped grows by this part of the context at a time. Reading a prompt anew takes as long as some
# hundred tokens of an answer, or minutes on a small computer.
DROP_STEPS = 4
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
    the oldest on; a question goes with its answer, so that roles still alternate. Some more go than need be:
    the same ones are then dropped for several turns, and what was read of the others need not be read again
    each time. The system prompt and the latest question, with what was begun as its answer, always stay, even
    if they alone are too long: then reading them raises PromptTooLongError, as a conversation does that
    nothing may be dropped from.
    """
    everything = tuple(messages)
    if params.overflow is OverflowPolicy.STOP:
        return Sent(everything)
    system = tuple(message for message in everything if message.role == "system")
    turns = tuple(message for message in everything if message.role != "system")
    begins = [0, *(place for place, message in enumerate(turns) if message.role == "user" and place)]
    limit = capacity - room_for_answer(params, capacity)

    def first_within(tokens: int) -> int:
        """The first beginning with which no more than `tokens` are sent; the last one without a look."""

        def fits(begin: int) -> bool:  # the later it begins, the shorter it is
            return count((*system, *turns[begin:])) <= tokens

        return begins[bisect_left(begins, True, 1, len(begins) - 1, key=fits)]

    excess = 0 if len(begins) == 1 else count((*system, *turns)) - limit
    if excess <= 0:
        return Sent(everything)
    if params.overflow is OverflowPolicy.KEEP_LATEST:
        first = begins[-1]
    else:
        step = max(1, capacity // DROP_STEPS)
        first = first_within(limit + excess - -(-excess // step) * step)
        if first == begins[-1]:
            first = first_within(limit)
    return Sent((*system, *turns[first:]), first)
