"""The formats that a chat can be exported to, and a chat as the bytes of a file in one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.export.html import to_html
from app.export.json_format import to_json
from app.export.markdown import to_markdown
from app.export.options import ExportOptions
from app.export.pdf import to_pdf
from app.export.plain import to_text
from app.i18n import tr, tr_noop
from app.storage.rows import Conversation, MessageRow
from engine.text import clean_text


@dataclass(frozen=True)
class ExportKind:
    """A format: how settings name it, the ending of its files, and what it is good for."""

    name: str
    suffix: str
    label_text: str
    help_text: str

    @property
    def label(self) -> str:
        """What it is called."""
        return tr(self.label_text)

    @property
    def help(self) -> str:
        """What it is good for."""
        return tr(self.help_text)

    @property
    def filter(self) -> str:
        """The entry of a file dialog's list of formats."""
        return f"{self.label} (*{self.suffix})"


MARKDOWN = ExportKind(
    "markdown", ".md", tr_noop("Markdown"), tr_noop("Text with its marks, for editors and wikis.")
)
HTML = ExportKind(
    "html",
    ".html",
    tr_noop("Web page"),
    tr_noop("One file for any browser, with colours for light and dark screens."),
)
PDF = ExportKind(
    "pdf",
    ".pdf",
    tr_noop("PDF"),
    tr_noop("Pages to print or to send. Of attached files they have the beginning."),
)
TEXT = ExportKind("text", ".txt", tr_noop("Plain text"), tr_noop("Only the words, as they were written."))
JSON = ExportKind(
    "json", ".json", tr_noop("JSON"), tr_noop("For programs. The only format that can be imported again.")
)
KINDS = (MARKDOWN, HTML, PDF, TEXT, JSON)


def kind_named(name: str) -> ExportKind:
    """The format of this name; Markdown for one that there is not."""
    return next((kind for kind in KINDS if kind.name == name), MARKDOWN)


def content(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    kind: ExportKind,
    options: ExportOptions,
    between: Callable[[], None] = lambda: None,
) -> bytes:
    """The file. `messages` with all versions; long work calls `between`, which may raise to end it."""
    if kind is PDF:
        return to_pdf(conversation, messages, options, between=between)
    if kind is JSON:
        text = to_json(conversation, messages, datetime.now(UTC), options)
    elif kind is HTML:
        text = to_html(conversation, messages, options, between=between)
    elif kind is TEXT:
        text = to_text(conversation, messages, options)
    else:
        text = to_markdown(conversation, messages, options)
    return clean_text(text).encode("utf-8")
