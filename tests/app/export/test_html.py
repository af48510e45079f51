import re
from dataclasses import replace
from datetime import UTC
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import i18n
from app.export import ExportOptions, to_html
from app.storage import Conversation, MessageRow, MessageState
from engine.errors import Cancelled
from tests.app.export.conftest import START
from tests.app.test_i18n import compiled

VOID = {"meta", "br", "hr"}


class Reader(HTMLParser):
    """Finds the texts, and fails where tags are not closed in order."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.summaries: list[str] = []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "summary":
            self.summaries.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID | {"path", "rect", "line", "polygon"}  # the latter in drawings

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data
        if self.open and self.open[-1] == "summary":
            self.summaries[-1] += data


def test_everything_is_there(conversation: Conversation, messages: list[MessageRow]) -> None:
    reader = Reader(to_html(conversation, messages, zone=UTC))
    for part in (
        "Rome & *Paris*",
        "With Starter_1, begun 2026-01-02 03:04.",
        "Be brief.",
        "When was Rome founded?",
        "print(-753)",
        "The answer reached its longest <length>.",
        "120 tokens, 45.5 tokens/s",
        "temperature 0.5",
    ):
        assert part in reader.text
    assert reader.summaries == ["System prompt", "Assistant: version 1 of 2"]
    assert ("span", {"class": "type"}) in reader.tags  # `print` in its colour


def test_parts_can_be_left_out(conversation: Conversation, messages: list[MessageRow]) -> None:
    options = ExportOptions(system_prompt=False, settings=False, statistics=False, branches=False)
    reader = Reader(to_html(conversation, messages, options, zone=UTC))
    assert reader.summaries == []
    for part in ("Be brief", "tokens/s", "temperature", "version"):
        assert part not in reader.text


def test_nested_versions_are_folded_into_each_other(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    def row(number: int, parent: int | None, active: bool) -> MessageRow:
        return replace(messages[0], id=number, parent=parent, active=active, content=f"text {number}")

    rows = [row(1, None, True), row(2, 1, False), row(3, 2, False), row(4, 2, False), row(5, 1, False)]
    reader = Reader(to_html(conversation, [*rows, row(6, 1, True), row(7, 6, True)], zone=UTC))
    assert reader.summaries[1:] == ["You: version 1 of 3", "You: version 2 of 2", "You: version 2 of 3"]
    assert re.findall(r"text \d", reader.text) == [f"text {number}" for number in (1, 6, 2, 3, 4, 5, 7)]


def test_it_can_be_given_up(conversation: Conversation, messages: list[MessageRow]) -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        to_html(conversation, messages, between=stop)


def test_both_themes_are_in_the_file(conversation: Conversation, messages: list[MessageRow]) -> None:
    document = to_html(conversation, messages)
    assert document.count("--base: #") == 2
    assert "prefers-color-scheme: dark" in document
    assert "$" not in document.partition("</style>")[0]


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,AAAA)",
        "[x](file:///etc/passwd)",
        "![x](https://example.org/a.png)",
        "![x](javascript:alert(1))",
        '[x](https://example.org/" onclick="alert(1))',
        "<javascript:alert(1)>",
        "```<script>\n</pre><script>alert(1)</script>\n```",
        '```"onclick="alert(1)\nx\n```',
        "</section></main><style>body{display:none}</style>",
        "a\x00b <!-- open",
        "[a]: javascript:alert(1)\n\n[a]",
    ],
)
def test_a_message_brings_neither_scripts_nor_anything_that_is_loaded(
    conversation: Conversation, messages: list[MessageRow], content: str
) -> None:
    reader = Reader(to_html(conversation, [replace(messages[0], content=content)]))
    assert_harmless(reader)
    assert len([tag for tag, _ in reader.tags if tag == "style"]) == 1


def assert_harmless(reader: Reader) -> None:
    for tag, attributes in reader.tags:
        assert tag not in {
            "script",
            "img",
            "iframe",
            "object",
            "embed",
            "link",
            "form",
            "base",
            "use",
            "image",
            "foreignobject",
        }
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert (attributes.get("style") or "text-align:").startswith(("text-align:", "width: "))
        assert "xlink:href" not in attributes
        if "href" in attributes:
            assert (attributes["href"] or "").lower().startswith(("http:", "https:", "mailto:"))


def test_a_picture_is_a_link_and_tasks_have_boxes(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    content = "![a *dog*](https://example.org/a.png)\n\n- [x] done\n- [ ] open\n- [y] neither\n"
    reader = Reader(to_html(conversation, [replace(messages[0], content=content)]))
    assert ("a", {"href": "https://example.org/a.png"}) in reader.tags
    for part in ("[image: a *dog*]", "☑ done", "☐ open", "[y] neither"):
        assert part in reader.text


def test_formulas_are_drawn_and_others_shown_as_they_are(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    content = "So $a_1$ or\n\n$$\\frac{1}{2}$$\n\nnot $\\nosuchthing<b>$, $5 or\n\n\\[ open"
    document = to_html(conversation, [replace(messages[0], content=content)])
    reader = Reader(document)
    drawn = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert [attributes["aria-label"] for attributes in drawn] == ["a_1", "\\frac{1}{2}"]
    assert "em; vertical-align: -" in (drawn[0]["style"] or "")
    assert "currentColor" in document
    for part in ("$\\nosuchthing<b>$", "$5 or", "\\[open"):
        assert part in reader.text


@pytest.mark.parametrize(
    "tex", ["\\text{<script>}", "<script>", "\\href{javascript:x}{y}", 'a"onclick=x', "&lt;"]
)
def test_no_formula_brings_markup(conversation: Conversation, messages: list[MessageRow], tex: str) -> None:
    assert_harmless(Reader(to_html(conversation, [replace(messages[0], content=f"$x {tex}$ $${tex}$$")])))


@given(st.text(), st.text(alphabet="`*_[]()<>!#-|~$\\ \n&;:ax1"))
def test_any_message_leaves_the_page_whole(title: str, content: str) -> None:
    chat = Conversation(1, title, "", content, START, START)
    rows = [
        MessageRow(number, 1, "user", text, MessageState.COMPLETE, START)
        for number, text in enumerate((title, content))
    ]
    reader = Reader(to_html(chat, rows))
    assert_harmless(reader)
    assert len([tag for tag, attributes in reader.tags if tag == "section" and attributes]) == 2


def test_the_page_says_which_language_its_words_are_in(
    conversation: Conversation, messages: list[MessageRow], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert '<html lang="en">' in to_html(conversation, messages)
    folder = data_dir / "translations" / "pt_BR" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "fiddler-chat.mo").write_bytes(compiled({"You": "Você"}))
    for name in ("_catalogue", "_language"):
        monkeypatch.setattr(i18n, name, getattr(i18n, name))  # is put back
    assert i18n.use_language("pt_BR")
    page = to_html(conversation, messages)
    assert '<html lang="pt-BR">' in page
    assert "Você" in page
