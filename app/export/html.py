"""A conversation as one HTML file that needs nothing else, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from html import escape
from string import Template

from app.attachments.form import Attachment, Parts, parse
from app.chat.code_lexer import language_name
from app.export.formulas import svg_formula
from app.export.highlight import by_class, colored, style_rules
from app.export.options import ExportOptions
from app.export.outline import Entry, outline
from app.export.rich import RichText
from app.export.words import file_words, origin, remarks, speaker, time_text, version
from app.i18n import language_tag, tr
from app.paths import asset
from app.storage.rows import Conversation, MessageRow
from app.theme_colors import Colors, load_colors

_COLORS = ("base", "surface", "border", "text", "muted", "accent", "bubble", "code", "link")


def to_html(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    options: ExportOptions | None = None,
    *,
    zone: tzinfo | None = None,
    between: Callable[[], None] = lambda: None,
) -> str:
    """The whole document. Versions that the chat does not show are folded away, to be opened by a click.

    `between` is called between messages; what it raises ends the work.
    """
    chosen = options or ExportOptions()
    rich = RichText(_code, svg_formula)
    parts = [f"<h1>{escape(conversation.title)}</h1>", f"<p>{escape(origin(conversation, zone))}</p>"]
    body = ["<header>", *parts, "</header>"]
    if chosen.system_prompt and conversation.system_prompt:
        summary = f"<summary>{escape(tr('System prompt'))}</summary>"
        body.append(f'<details class="prompt">{summary}{rich.html(conversation.system_prompt)}</details>')
    depth = 0
    for entry in outline(messages, branches=chosen.branches):
        between()
        body += _folds(depth, entry)
        depth = entry.depth
        body += _message(entry, chosen, rich, zone)
    body += ["</details>"] * depth
    template = Template(asset("export/page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(conversation.title),
        style=_style(),
        body="\n".join(body),
        language=language_tag(),
    )


def _folds(depth: int, entry: Entry) -> list[str]:
    """Close the folded versions that have ended, and open one for a version that begins."""
    ended = depth - entry.depth + entry.begins
    lines = ["</details>"] * ended
    if entry.begins:
        text = tr("{who}: {version}", who=speaker(entry.message), version=version(entry))
        lines.append(f'<details class="branch"><summary>{escape(text)}</summary>')
    return lines


def _message(entry: Entry, options: ExportOptions, rich: RichText, zone: tzinfo | None) -> list[str]:
    message = entry.message
    parts = parse(message.content) if message.role == "user" else Parts((), message.content)
    which = version(entry)
    details = f"<time>{escape(time_text(message.created, zone))}</time>"
    if which:
        details += f" <span>{escape(which)}</span>"
    lines = [
        f'<section class="{message.role}" dir="auto">',
        f"<h2>{escape(speaker(message))} {details}</h2>",
        *(_file(file) for file in parts.attachments),
        rich.html(parts.text),
    ]
    lines += [f'<p class="remark">{escape(remark)}</p>' for remark in remarks(message, options)]
    return [*lines, "</section>"]


def _file(file: Attachment) -> str:
    """An attached file, folded away."""
    summary = f"<summary>{escape(file_words(file))}</summary>"
    return f'<details class="file">{summary}{_code(file.content, file.language)}</details>'


def _code(code: str, language: str) -> str:
    label = f"<figcaption>{escape(language_name(language))}</figcaption>" if language else ""
    text = colored(code, language, by_class)
    return f'<figure class="code" dir="ltr">{label}<pre>{text}</pre></figure>'


def _style() -> str:
    style = Template(asset("export/page.css").read_text(encoding="utf-8"))
    light, dark = load_colors("light"), load_colors("dark")
    return style.substitute(
        light=_variables(light),
        dark=_variables(dark),
        light_code=style_rules(light),
        dark_code=style_rules(dark),
    )


def _variables(colors: Colors) -> str:
    return " ".join(f"--{name}: {getattr(colors, name).name()};" for name in _COLORS)
