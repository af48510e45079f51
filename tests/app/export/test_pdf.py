import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.attachments.form import Attachment, compose
from app.export import to_pdf
from app.export.pages import PageWriter, Piece, _cut
from app.storage import Conversation, MessageRow
from engine.errors import Cancelled

pytestmark = pytest.mark.usefixtures("qapp")  # fonts want it


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def test_a_chat_is_a_pdf(conversation: Conversation, messages: list[MessageRow]) -> None:
    pdf = to_pdf(conversation, messages)
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert pages(pdf) == 1
    assert "Rome & *Paris*".encode("utf-16-be") in pdf  # the title, for the reader's window


@pytest.mark.parametrize(
    ("content", "least"),
    [
        ("```\n" + "a line of code\n" * 500 + "```", 6),
        ("word " * 6000, 6),
        ("| a | b |\n|---|---|\n" + "| some words | 2 |\n" * 200, 3),
        ("```\n" + "x" * 20_000 + "\n```", 2),  # without a place to break
        ("- item\n" * 300, 4),
    ],
)
def test_long_texts_go_over_several_pages(
    conversation: Conversation, messages: list[MessageRow], content: str, least: int
) -> None:
    pdf = to_pdf(conversation, [replace(messages[0], content=content)])
    assert least <= pages(pdf) < 3 * least


LOG = "\n".join(f"line {number} of the log" for number in range(5000))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The HTML of what has been put on pages."""
    html: list[str] = []
    add = PageWriter.add

    def look(self: PageWriter, piece: Piece) -> None:
        html.append(piece.html)
        add(self, piece)

    monkeypatch.setattr(PageWriter, "add", look)
    return html


@pytest.mark.parametrize("content", [LOG, LOG.replace("\n", " ")])
def test_a_long_attached_file_does_not_bury_the_conversation(
    conversation: Conversation, messages: list[MessageRow], printed: list[str], content: str
) -> None:
    asked = compose([Attachment("server.log", content)], "What went *wrong* here?")
    assert pages(to_pdf(conversation, [replace(messages[0], content=asked)])) <= 3
    text = "\n".join(printed)
    assert "Attached file server.log" in text
    assert "line 0 of the log" in text
    assert "The file goes on." in text
    assert "<em>wrong</em> here?" in text
    assert "```" not in text


def test_a_short_attached_file_is_printed_whole(
    conversation: Conversation, messages: list[MessageRow], printed: list[str]
) -> None:
    content = "\n".join(f"x{number} = 1" for number in range(60))
    to_pdf(conversation, [replace(messages[0], content=compose([Attachment("a.py", content)], "Why?"))])
    text = "\n".join(printed)
    assert "x59" in text
    assert "The file goes on." not in text


def test_odd_texts_are_no_trouble(conversation: Conversation, messages: list[MessageRow]) -> None:
    content = "مرحبا **بالعالم** 北京 🎻\x00\n\n<img src=file:///etc/passwd>\n\n![x](http://example.org)\n\n```\n\n```"
    assert pages(to_pdf(conversation, [replace(messages[0], content=content)])) == 1


def test_formulas_are_pictures(conversation: Conversation, messages: list[MessageRow]) -> None:
    pdf = to_pdf(
        conversation, [replace(messages[0], content="$a_1$ and\n\n$$\\frac{1}{2}$$\n\n$\\nosuchthing$")]
    )
    assert pdf.count(b"/Subtype /Image") >= 2
    assert b"/Subtype /Image" not in to_pdf(conversation, messages)


def test_it_can_be_given_up(conversation: Conversation, messages: list[MessageRow]) -> None:
    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        to_pdf(conversation, messages, between=between)
    assert calls == 3


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9))), st.integers(0, 60), st.integers(0, 60))
def test_a_page_ends_between_lines(shape: list[tuple[int, int]], begin: int, room: int) -> None:
    lines = sorted((float(top), float(top + height)) for top, height in shape)
    whole = max((bottom for _, bottom in lines), default=0.0)
    end = _cut(lines, begin, begin + room, whole)
    assert end <= begin + room
    if begin < end < whole:
        assert not [line for line in lines if line[0] < end < line[1] and line[0] >= begin]
