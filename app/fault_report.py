"""What a report about a fault of the program says: its place, and nothing that anybody wrote.

The message of an exception may quote whatever was being worked on. It is told for the kinds whose messages
speak of the program's own names alone; for the others, their kind and place are enough to find the fault.
"""

from __future__ import annotations

import linecache
import platform
import sys
from collections.abc import Iterator
from pathlib import PurePath
from traceback import walk_tb

from PySide6.QtCore import qVersion

from engine.version import version

_HARMLESS = (AttributeError, NameError, TypeError, ArithmeticError, RecursionError, MemoryError)
_ROOT = PurePath(__file__).parent.parent
_MOST_FRAMES = 40
_MOST_CAUSES = 5


def fault_report(error: BaseException) -> str:
    """The program and its surroundings, then the exception with its place and those it came from."""
    return "\n".join((surroundings(), "", *trace(error)))


def surroundings() -> str:
    """Versions and the operating system, in a line."""
    python = platform.python_version()
    return f"Fiddler Chat {version()} · Python {python} · Qt {qVersion()} · {platform.platform()}"


def trace(error: BaseException) -> Iterator[str]:
    """The lines about an exception, the causes first, as Python tells them."""
    chain = [error]
    while len(chain) < _MOST_CAUSES:
        before = chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__)
        if before is None or before in chain:
            break
        chain.append(before)
    for number, exception in enumerate(reversed(chain)):
        if number:
            yield "which led to:"
        frames = list(walk_tb(exception.__traceback__))
        if len(frames) > _MOST_FRAMES:
            yield f"  … {len(frames) - _MOST_FRAMES} more"
        for frame, line in frames[-_MOST_FRAMES:]:
            code = frame.f_code
            yield f"  {short_path(code.co_filename)}:{line} in {code.co_qualname}"
            source = linecache.getline(code.co_filename, line).strip()
            if source:
                yield f"    {source}"
        yield describe(exception)


def describe(error: BaseException) -> str:
    """The exception's kind, with its message where that cannot quote anything."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{name}: error {error.errno}"  # without the file's name
    if isinstance(error, ImportError):
        return f"{name}: {error.name}"  # without the folder
    return f"{name}: {error}" if isinstance(error, _HARMLESS) else name


def short_path(path: str) -> str:
    """A source file without the folders above the package, in which a user's name may be."""
    source = PurePath(path)
    if not source.is_absolute():  # as a packaged program has them
        return source.as_posix()
    if source.is_relative_to(_ROOT):
        return source.relative_to(_ROOT).as_posix()
    parts = source.parts
    for marker in ("site-packages", "dist-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        if marker in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(marker) :])
    return source.name
