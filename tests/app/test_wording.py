"""How the interface's texts are written: one dash, one ellipsis, one name for a key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import app
from app.shortcuts.book import shown

_MARKED = {"tr", "tr_noop", "tr_count"}
_AGAINST = {
    "a dash is an en dash": re.compile(r"—| - |\d-\d|\}-\{"),
    "an ellipsis is one character": re.compile(r"\.\.\."),
    "the key is called Enter": re.compile(r"\bReturn\b"),
    "no space before a percent sign": re.compile(r"[\d}] %"),
    "nothing is shouted": re.compile(r"!"),
}


def texts() -> Iterator[tuple[str, str]]:
    """Every text for translation, with its file and line."""
    root = Path(app.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MARKED:
                for part in node.args:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.relative_to(root)}:{node.lineno}", part.value


def test_texts_keep_to_the_rules() -> None:
    found = list(texts())
    assert len(found) > 500
    faults = [
        f"{place}: {rule}: {text!r}"
        for place, text in found
        for rule, against in _AGAINST.items()
        if against.search(text)
    ]
    assert faults == []


def test_keys_are_called_as_in_the_texts() -> None:
    assert shown("Return").endswith("Enter")
    assert shown("Ctrl+Return").endswith("Enter")
    assert shown("Ctrl+N").endswith("N")
