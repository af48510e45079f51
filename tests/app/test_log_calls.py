"""What the log is told is a template of ours with arguments: a report can tell the one without the other."""

from __future__ import annotations

import ast
from pathlib import Path

import app
import engine

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def test_every_log_call_begins_with_a_text_of_the_source() -> None:
    calls = 0
    for package in (app, engine):
        for path in Path(package.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                function = node.func if isinstance(node, ast.Call) else None
                if (
                    isinstance(function, ast.Attribute)
                    and function.attr in LEVELS
                    and isinstance(function.value, ast.Name)
                    and function.value.id in ("log", "_log", "logger", "logging")
                ):
                    assert isinstance(node, ast.Call)
                    first = node.args[0]
                    assert isinstance(first, ast.Constant), f"{path}:{node.lineno}"
                    calls += 1
    assert calls > 10
