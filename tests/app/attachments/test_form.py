from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.attachments.form import Attachment, Parts, compose, merged, parse, parts_of, with_files

# Letters that the form itself is made of come often.
PIECES = st.sampled_from(
    ["Attached file: ", "`", "```", "````", "\n", "\n\n", "a.txt", "txt", "x", " ", "北京"]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES).map("".join))
NAMES = st.one_of(st.sampled_from(["notes.txt", "a b.py", "Makefile", "x.tar.gz", "北京.md", "`.c++"]))
FILES = st.lists(st.builds(Attachment, NAMES, TEXTS), max_size=3)


def test_the_form_is_the_documented_one() -> None:
    file = Attachment("notes.txt", "one\ntwo")
    message = "Attached file: notes.txt\n```txt\none\ntwo\n```\n\nWhat is this?"
    assert compose([file], "What is this?") == message
    assert parse(message) == Parts((file,), "What is this?")


def test_a_fence_in_a_file_does_not_end_it() -> None:
    file = Attachment("README", "```python\nx = 1\n```\n\n````\n")
    message = compose([file, Attachment("b.PY", "")], "Explain.")
    assert message.startswith("Attached file: README\n`````\n```python\n")
    assert "\n\nAttached file: b.PY\n```py\n\n```\n\nExplain." in message
    assert parse(message) == Parts((file, Attachment("b.PY", "")), "Explain.")


@given(TEXTS)
def test_every_text_is_put_together_again_as_it_was(message: str) -> None:
    parts = parse(message)
    assert compose(parts.attachments, parts.text) == message


@given(FILES, TEXTS)
def test_files_and_text_are_found_again(files: list[Attachment], text: str) -> None:
    within = parse(text)  # a text that is typed in the form itself
    expected = Parts((*files, *within.attachments), within.text)
    assert parse(compose(files, text)) == expected


def test_what_is_nearly_in_the_form_is_text() -> None:
    for text in (
        "Attached file: a.txt\n```txt\none",  # not closed
        "Attached file: a.txt\n```\none\n```",  # not how it is written
        "Attached file: a.txt\n````txt\none\n````",
        "Attached file: a.txt\n```txt\none\n```\nnext",
        "Attached file: a.txt\n```txt\none\n```\n\n",
        "Attached file:  a.txt\n```txt\none\n```",
    ):
        assert parse(text) == Parts((), text)


def test_the_headline_is_what_was_typed_or_the_names() -> None:
    files = (Attachment("a.txt", "x"), Attachment("b.txt", "y"))
    assert Parts(files, "Which is longer?").headline == "Which is longer?"
    assert Parts(files, "").headline == "a.txt, b.txt"


def test_two_messages_become_one() -> None:
    one, other = Attachment("a.txt", "x"), Attachment("a.txt", "y")
    both = merged(compose([one], "first"), compose([other], "second"))
    assert parse(both) == Parts((one, Attachment("a (2).txt", "y")), "first\nsecond")
    assert merged("", "b") == merged("b", "") == "b"
    assert parse(merged(compose([one], ""), "b")) == Parts((one,), "b")


@given(FILES, TEXTS)
def test_files_and_words_come_apart_as_they_stand_in_the_message(files: list[Attachment], text: str) -> None:
    message = compose(files, text)
    stands, typed = parts_of(message)
    assert "\n\n".join(part for part in (stands, typed) if part) == message
    assert typed == parse(message).text
    assert parse(stands).attachments == parse(message).attachments


@given(FILES, FILES)
def test_no_file_is_lost_and_no_two_have_one_name(old: list[Attachment], new: list[Attachment]) -> None:
    kept = with_files(with_files((), old), new)
    names = [file.name for file in kept]
    assert len(set(names)) == len(names)
    assert {file.content for file in kept} == {file.content for file in (*old, *new)}
    assert with_files(kept, new) == kept
