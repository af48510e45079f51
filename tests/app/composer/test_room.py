from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.composer.room import Room, explanation, line, refusal
from engine.params import OverflowPolicy

COUNTS = st.integers(0, 10_000)


def test_the_line_counts_everything_the_model_reads() -> None:
    assert line(Room(12, 290, 10, 4096)) == "312 of 4,096 tokens"
    assert "The chat before it: 290" in explanation(Room(12, 290, 10, 4096))


def test_what_is_too_long_is_said_in_words_with_what_to_do() -> None:
    chat = Room(100, 4000, 10, 4096)
    assert line(chat) == "4,110 of 4,096 tokens: too long"
    assert "new chat" in refusal(chat, 0)
    message = Room(5000, 0, 10, 4096)
    assert "5,000 tokens, and there is room for 4,085" in refusal(message, 0)
    assert "Shorten" in refusal(message, 0)
    assert "Remove the file" in refusal(message, 1)
    assert "Remove a file" in refusal(message, 2)


def test_little_room_and_left_out_turns_are_said() -> None:
    assert line(Room(100, 3900, 10, 4096)).endswith("little room for an answer")
    drops = Room(100, 4000, 10, 4096, OverflowPolicy.DROP_OLDEST, 1024)
    assert line(drops).endswith("the beginning is left out")
    assert refusal(drops, 0) == ""
    assert line(Room(100, 3900, 10, 4096, OverflowPolicy.DROP_OLDEST, 1024)).endswith("is left out")
    assert line(Room(3900, 0, 10, 4096, OverflowPolicy.DROP_OLDEST, 1024)) == "3,910 of 4,096 tokens"


@given(COUNTS, COUNTS, COUNTS, st.integers(1, 10_000), st.sampled_from(OverflowPolicy), COUNTS)
def test_a_message_is_refused_exactly_when_it_does_not_fit(
    message: int, chat: int, frame: int, context: int, overflow: OverflowPolicy, reserve: int
) -> None:
    room = Room(message, chat, frame, context, overflow, reserve)
    assert bool(refusal(room, 0)) is not room.fits
    assert line(room).endswith("too long") is not room.fits
    assert room.message_fits or not room.fits
    if overflow is not OverflowPolicy.STOP:
        assert room.fits is room.message_fits
