from __future__ import annotations

from app.attachments.form import Attachment, compose, parse
from app.composer.history import MessageHistory

SENT = ["one", "two", "two", "three"]


def test_messages_come_back_from_the_latest_on_and_what_was_written_at_the_end() -> None:
    history = MessageHistory()
    shown = "half a sen"
    for expected in ("three", "two", "one"):
        found = history.step(SENT, shown, -1)
        assert found == expected
        shown = found
    assert history.step(SENT, shown, -1) is None  # the oldest
    for expected in ("two", "three", "half a sen"):
        found = history.step(SENT, shown, 1)
        assert found == expected
        shown = found
    assert not history.looking
    assert history.step(SENT, shown, 1) is None


def test_nothing_comes_back_where_nothing_was_sent() -> None:
    assert MessageHistory().step([], "written", -1) is None
    assert MessageHistory().step(["", ""], "written", -1) is None


def test_changes_are_kept_while_others_are_looked_at() -> None:
    history = MessageHistory()
    assert history.step(SENT, "written", -1) == "three"
    assert history.step(SENT, "three!", -1) == "two"
    assert history.step(SENT, "two", 1) == "three!"
    assert history.step(SENT, "three!", 1) == "written"
    assert history.step(SENT, "written", -1) == "three!"
    assert history.step(SENT, "three", -1) == "two"  # taken back
    assert history.step(SENT, "two", 1) == "three"


def test_the_draft_on_the_disk_is_what_was_written_and_what_was_changed() -> None:
    history = MessageHistory()
    assert history.to_keep("written") == "written"
    history.step(SENT, "written", -1)
    assert history.to_keep("three") == "written"
    assert history.to_keep("three!") == "written\nthree!"


def test_what_was_written_is_back_after_a_message_was_sent_again() -> None:
    history = MessageHistory()
    assert history.leave() == ""
    history.step(SENT, "written", -1)
    assert history.leave() == "written"
    assert not history.looking
    assert history.step([*SENT, "four"], "", -1) == "four"


def test_files_come_back_with_their_messages() -> None:
    message = compose([Attachment("a.txt", "x")], "What is this?")
    history = MessageHistory()
    found = history.step([message], "", -1)
    assert found is not None
    assert parse(found).attachments == (Attachment("a.txt", "x"),)
