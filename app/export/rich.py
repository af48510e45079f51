"""Markdown from messages as HTML that is safe to open: no scripts, nothing loaded, raw HTML shown as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from app.chat.markdown import new_parser
from app.i18n import tr

SCHEMES = ("http", "https", "mailto")
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}

Code = Callable[[str, str], str]  # code and its language, as HTML
Formula = Callable[[str, str], str]  # TeX and the mark before it, as HTML


class RichText:
    """Turns Markdown, read as the chat reads it, into HTML; given are what draws code and formulas."""

    def __init__(self, code: Code, formula: Formula) -> None:
        self._parser = new_parser()
        self._parser.validateLink = _is_safe  # type: ignore[method-assign]
        self._parser.core.ruler.push("tasks", _show_tasks)
        self._parser.add_render_rule("fence", _fence_with(code))
        self._parser.add_render_rule("code_block", _fence_with(code))
        self._parser.add_render_rule("image", _image)
        self._parser.add_render_rule("math_inline", _formula_with(formula, "", ""))
        self._parser.add_render_rule("math_block", _formula_with(formula, '<p class="formula">', "</p>\n"))
        self._parser.add_render_rule("math_open", _open_formula)

    def html(self, markdown: str) -> str:
        """The HTML of a message."""
        return str(self._parser.render(markdown))

    def blocks(self, markdown: str) -> list[str]:
        """The same, each paragraph, list, table or other block by itself."""
        groups: list[list[Token]] = []
        level = 0
        for token in self._parser.parse(markdown):
            if level == 0:
                groups.append([])
            groups[-1].append(token)
            level += token.nesting
        return [str(self._parser.renderer.render(group, self._parser.options, {})) for group in groups]


def _fence_with(code: Code) -> Callable[..., str]:
    def fence(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
        words = tokens[index].info.split()
        return code(tokens[index].content.rstrip("\n"), words[0] if words else "")

    return fence


def _formula_with(formula: Formula, before: str, after: str) -> Callable[..., str]:
    def rule(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
        return before + formula(tokens[index].content, tokens[index].markup) + after

    return rule


def _open_formula(
    _: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any
) -> str:
    """The source of a formula whose end never came."""
    return f"<p>{escape(tokens[index].markup + tokens[index].content)}</p>\n"


def _is_safe(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _image(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
    """A link to the picture: opening an export must not load anything."""
    source, words = str(tokens[index].attrGet("src") or ""), tokens[index].content
    label = tr("[image: {label}]", label=words or source)
    return f'<a href="{escape(source)}">{escape(label)}</a>'


def _show_tasks(state: StateCore) -> None:
    """Boxes for the items of task lists."""
    tokens = state.tokens
    for item, inline in zip(tokens, tokens[2:], strict=False):  # between them the item's paragraph begins
        if item.type == "list_item_open" and inline.type == "inline" and inline.children:
            first = inline.children[0]
            box = _TASKS.get(first.content[:4]) if first.type == "text" else None
            if box:
                first.content = box + first.content[4:]
