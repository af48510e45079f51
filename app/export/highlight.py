"""Code as HTML in the colours that the chat gives it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from app.chat.code_lexer import CodeLexer, Role, Span
from app.theme_colors import Colors


def colored(code: str, language: str, attribute: Callable[[Role], str]) -> str:
    """`code` with a `<span>` around what has a colour; no span reaches past its line.

    `attribute` gives the span's attribute for what it holds: `by_class`, or `by_color` of a theme.
    """
    lexer = CodeLexer(language)
    while not lexer.has_read(code) and lexer.read(code) is not None:
        pass
    return "\n".join(
        _line(line, lexer.spans(number), attribute) for number, line in enumerate(code.split("\n"))
    )


def by_class(role: Role) -> str:
    """The class that `style_rules` gives a colour."""
    return f'class="{role.value}"'


def by_color(colors: Colors) -> Callable[[Role], str]:
    """The colours themselves, for readers without style sheets."""
    return lambda role: f'style="color:{_color(colors, role)}"'


def style_rules(colors: Colors) -> str:
    """The rules for the classes, inside `.code`."""
    return "\n".join(f".code .{role.value} {{ color: {_color(colors, role)}; }}" for role in Role)


def _color(colors: Colors, role: Role) -> str:
    return str(getattr(colors, f"code_{role.value}").name())


def _line(line: str, spans: list[Span], attribute: Callable[[Role], str]) -> str:
    units = line.encode("utf-16-le", "surrogatepass")  # as the spans count

    def text(start: int, end: int) -> str:
        return escape(units[2 * start : 2 * end].decode("utf-16-le", "replace"), quote=False)

    parts, done = [], 0
    for span in spans:
        end = span.start + span.length
        parts += [text(done, span.start), f"<span {attribute(span.role)}>{text(span.start, end)}</span>"]
        done = end
    return "".join([*parts, text(done, len(units) // 2)])
