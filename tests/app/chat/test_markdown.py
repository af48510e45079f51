from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.markdown import parse


def formulas(source: str) -> list[tuple[str, str, str]]:
    """Kind, mark and source of each formula."""
    found = []
    for token in parse(source):
        for part in (token, *(token.children or [])):
            if part.type.startswith("math"):
                found.append((part.type, part.markup, part.content))
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("so $x^2$ is", [("math_inline", "$", "x^2")]),
        (r"so \(x_1\) and \[y\] are", [("math_inline", "\\(", "x_1"), ("math_inline", "\\[", "y")]),
        ("a $$x$$ b", [("math_inline", "$$", "x")]),
        ("$$\nx\n- y\n$$\nafter", [("math_block", "$$", "x\n- y")]),
        ("\\[\na = b\n\\]", [("math_block", "\\[", "a = b")]),
        ("$$x = 1$$", [("math_block", "$$", "x = 1")]),
        ("text\n$$\nx\n$$", [("math_block", "$$", "x")]),
        ("- item\n  $$\n  x\n  $$", [("math_block", "$$", "x")]),
        ("> $$x$$", [("math_block", "$$", "x")]),
        ("$$\nx +", [("math_open", "$$", "x +")]),
        (r"$a \$ b$", [("math_inline", "$", r"a \$ b")]),
        ("$*a* b*c*$", [("math_inline", "$", "*a* b*c*")]),
        ("| a |\n|---|\n| $x$ |", [("math_inline", "$", "x")]),
        ("$5$ and $2 + 3$", [("math_inline", "$", "5"), ("math_inline", "$", "2 + 3")]),
    ],
)
def test_formulas_are_found(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert formulas(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "it costs $5 and then $6",
        "from $5 to 6$ a day",
        "$ x$",
        "$x $",
        "$x",
        "$$",
        r"\$x\$",
        "`$x$` and `\\(y\\)`",
        "$6 with `$x` in it",
        "$HOME and $PATH",
        "```\n$x$\n```",
    ],
)
def test_dollars_that_are_no_formulas(source: str) -> None:
    assert [found for found in formulas(source) if found[0] != "math_open"] == []


@given(st.text("$\\()[] \nab1`-|>", max_size=40))
def test_no_source_breaks_the_parser(source: str) -> None:
    assert sum(token.nesting for token in parse(source)) == 0  # what is opened is closed
    unescaped = source.replace("\\|", "|")  # in the cells of tables
    for _, mark, tex in formulas(source):
        assert mark in source
        assert all(line in source or line in unescaped for line in tex.split("\n"))


def test_raw_html_is_text() -> None:
    (inline,) = [token for token in parse("<b>x</b> <script>y</script>") if token.type == "inline"]
    assert "".join(part.content for part in inline.children or []) == "<b>x</b> <script>y</script>"
