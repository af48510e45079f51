"""A conversation as PDF, laid out and written by Qt; its text can be searched and copied.

Of an attached file only the beginning is there: a page cannot be folded, and a hundred of them with a log
would bury the conversation. The other formats have all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from html import escape
from string import Template

from app.attachments.form import Attachment, Parts, parse
from app.export.highlight import by_color, colored
from app.export.options import ExportOptions
from app.export.outline import Entry, outline
from app.export.pages import PageWriter, Piece
from app.export.rich import Formula, RichText
from app.export.words import file_words, headline, origin, remarks
from app.i18n import tr
from app.paths import asset
from app.storage.rows import Conversation, MessageRow
from app.theme_colors import Colors, load_colors

_CODE_LINES = 60  # of a code block in one piece
_FILE_LINES, _FILE_CHARACTERS = 60, 6000  # of an attached file: about a page
_STEP = 14.0  # points by which what branches off is moved to the right
_QUOTE = 12.0
_INSET = 5.0  # of code in its ground
_CODE = "<pre>"
_HEADING, _HEADING_END = re.compile("<h([1-6])>"), re.compile("</h[1-6]>")


def to_pdf(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    options: ExportOptions | None = None,
    *,
    zone: tzinfo | None = None,
    between: Callable[[], None] = lambda: None,
) -> bytes:
    """The bytes of the file. `between` is called again and again; what it raises ends the work.

    Outside of the GUI thread it must run in one of Qt's: the layout uses timers.
    """
    colors = load_colors("light")
    style = Template(asset("export/print.css").read_text(encoding="utf-8"))
    names = ("text", "muted", "border", "link", "code")
    values = {name: getattr(colors, name).name() for name in names}
    pages = PageWriter(conversation.title, style.substitute(values), colors)
    try:
        chosen, formula = options or ExportOptions(), pages.formulas.html
        for piece in _pieces(conversation, messages, chosen, zone, colors, formula):
            between()
            pages.add(piece)
    except BaseException:
        pages.abandon()
        raise
    return pages.finish()


def _pieces(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    options: ExportOptions,
    zone: tzinfo | None,
    colors: Colors,
    formula: Formula,
) -> Iterator[Piece]:
    attribute = by_color(colors)
    rich = RichText(lambda code, language: f"{_CODE}{colored(code, language, attribute)}</pre>", formula)
    yield Piece(f'<p class="title">{escape(conversation.title)}</p>', keep=True)
    yield Piece(f'<p class="quiet">{escape(origin(conversation, zone))}</p>', above=2)
    if options.system_prompt and conversation.system_prompt:
        yield _heading(tr("System prompt"), 0)
        yield from _text(rich, conversation.system_prompt, 0, colors)
    for entry in outline(messages, branches=options.branches):
        yield from _message(entry, options, rich, zone, colors)


def _message(
    entry: Entry, options: ExportOptions, rich: RichText, zone: tzinfo | None, colors: Colors
) -> Iterator[Piece]:
    message = entry.message
    parts = parse(message.content) if message.role == "user" else Parts((), message.content)
    yield _heading(headline(entry, zone), entry.depth)
    for file in parts.attachments:
        yield from _file(file, entry.depth, colors)
    yield from _text(rich, parts.text, entry.depth, colors)
    for remark in remarks(entry.message, options):
        yield _quiet(remark, entry.depth)


def _heading(text: str, depth: int) -> Piece:
    return Piece(f'<p class="who">{escape(text)}</p>', _STEP * depth, above=14, keep=True)


def _quiet(text: str, depth: int, *, keep: bool = False) -> Piece:
    return Piece(f'<p class="quiet">{escape(text)}</p>', _STEP * depth, above=4, keep=keep)


def _file(file: Attachment, depth: int, colors: Colors) -> Iterator[Piece]:
    """The beginning of an attached file, and that there is more."""
    shown = "\n".join(file.content.split("\n", _FILE_LINES)[:_FILE_LINES])[:_FILE_CHARACTERS]
    yield _quiet(file_words(file), depth, keep=True)
    yield from _code(colored(shown, file.language, by_color(colors)), depth, colors)
    if len(shown) < len(file.content):
        yield _quiet(tr("The file goes on. Exports in the other formats have all of it."), depth)


def _text(rich: RichText, markdown: str, depth: int, colors: Colors) -> Iterator[Piece]:
    for block in rich.blocks(markdown):
        if not block.startswith(_CODE):
            # Qt's own sizes for headings are those of a book's title.
            quote = _QUOTE if block.startswith("<blockquote>") else 0.0
            plain = _HEADING.sub(r'<p class="h\1">', block)
            keep = plain != block
            html, indent = _HEADING_END.sub("</p>", plain), _STEP * depth + quote
            yield Piece(html, indent, above=10 if keep else 5, keep=keep)
            continue
        yield from _code(block.removeprefix(_CODE).removesuffix("</pre>"), depth, colors)


def _code(html: str, depth: int, colors: Colors) -> Iterator[Piece]:
    """Code on its ground, some lines in each piece."""
    lines = html.split("\n")
    for start in range(0, len(lines), _CODE_LINES):
        part = "\n".join(lines[start : start + _CODE_LINES])
        joined = (start > 0, start + _CODE_LINES < len(lines))
        above = 0 if start else 5
        yield Piece(f"{_CODE}{part}</pre>", _STEP * depth, above, colors.code, _INSET, joined)
