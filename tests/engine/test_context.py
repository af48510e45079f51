"""Which messages are sent: against the definition of each policy, by trying every beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.context import Sent, messages_to_send, room_for_answer
from engine.params import GenerationParams, Message, OverflowPolicy

DROP, KEEP, STOP = OverflowPolicy.DROP_OLDEST, OverflowPolicy.KEEP_LATEST, OverflowPolicy.STOP


def count(messages: Sequence[Message]) -> int:
    """Two tokens for a message's marks, one for each letter, one for the start."""
    return 1 + sum(2 + len(message.content) for message in messages)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns that alternate, perhaps after a system prompt, perhaps with a begun answer at the end."""
    lengths = draw(st.lists(st.integers(1, 30), min_size=1, max_size=12))
    roles = ("user", "assistant")
    turns = [Message(roles[place % 2], "x" * length) for place, length in enumerate(lengths)]  # type: ignore[arg-type]
    if draw(st.booleans()):
        turns.insert(0, Message("system", "s" * draw(st.integers(1, 20))))
    return turns


@given(
    conversations(),
    st.sampled_from(OverflowPolicy),
    st.integers(16, 300),
    st.integers(1, 100),
    st.sampled_from([1, 4]),
)
def test_each_policy_sends_what_its_definition_says(
    messages: list[Message], policy: OverflowPolicy, capacity: int, max_tokens: int, beams: int
) -> None:
    params = GenerationParams(max_tokens=max_tokens, beams=beams, overflow=policy)
    sent = messages_to_send(messages, params, capacity, count)
    system = [message for message in messages if message.role == "system"]
    turns = messages[len(system) :]
    assert list(sent.messages) == system + turns[sent.dropped :]

    limit = capacity - min(max_tokens * beams, capacity // 4)
    begins = [place for place, message in enumerate(turns) if message.role == "user"]
    fitting = [place for place in begins if count(system + turns[place:]) <= limit]
    if policy is STOP or begins[0] in fitting:
        expected = 0
    elif policy is KEEP:
        expected = begins[-1]
    else:
        least = fitting[0] if fitting else begins[-1]
        step = max(1, capacity // 4)
        excess = count(system + turns) - limit
        more = [
            place
            for place in begins
            if count(system + turns) - count(system + turns[place:]) >= math.ceil(excess / step) * step
        ]
        expected = more[0] if more and more[0] < begins[-1] else least
        assert expected >= least
    assert sent.dropped == expected


def test_what_is_dropped_stays_the_same_for_several_turns() -> None:
    """So that the prompt begins as the one before, whose keys and values are there."""
    params = GenerationParams(max_tokens=50, overflow=DROP)
    messages, dropped = [], []
    for _ in range(60):
        messages.append(Message("user", "q" * 18))
        dropped.append(messages_to_send(messages, params, 800, count).dropped)
        messages.append(Message("assistant", "a" * 18))
    changes = sum(before != after for before, after in pairwise(dropped))
    assert dropped[-1] > 0
    assert changes <= 10  # of 60 turns, 42 of which no longer fit; each would be read anew


def test_a_begun_answer_stays_with_its_question() -> None:
    messages = [
        Message("user", "a" * 40),
        Message("assistant", "b" * 40),
        Message("user", "c" * 10),
        Message("assistant", "d" * 10),
    ]
    for policy in (DROP, KEEP):
        params = GenerationParams(max_tokens=8, overflow=policy)
        assert messages_to_send(messages, params, 64, count) == Sent(tuple(messages[2:]), 2)


def test_stopping_needs_no_count() -> None:
    def never(_: Sequence[Message]) -> int:
        raise AssertionError("counting costs time")

    messages = [Message("user", "a" * 1000)]
    assert messages_to_send(messages, GenerationParams(), 16, never).dropped == 0


def test_the_room_for_an_answer_is_its_length_or_a_quarter() -> None:
    assert room_for_answer(GenerationParams(max_tokens=10), 400) == 10
    assert room_for_answer(GenerationParams(max_tokens=1000), 400) == 100
    assert room_for_answer(GenerationParams(max_tokens=10, beams=4), 400) == 40
