"""Triton's interpreter, mended where it does not get along with this numpy, and where it loses time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

# A kernel sees the language as `tl`; the functions that Triton itself wrote in it see `core`.
from triton import language as tl  # noqa: F401
from triton.language import core  # noqa: F401
from triton.runtime import interpreter

_patch_language = interpreter._patch_lang
_patch_tensors = interpreter._patch_lang_tensor


def _patch_tensors_and_index(tensor: Any, scope: Any) -> None:
    """Let a loaded number end a range: Triton 3.6 makes it int() of an array [1], numpy 2.4 refuses."""
    _patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def _patch_both_names(kernel: Any) -> Any:
    """Patch what this module sees of the language, so all that a kernel and its functions see."""
    return _patch_language(_patch_both_names)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function from within a kernel, without patching the language again, a millisecond each time."""
    return self.rewrite()(*args, **kwargs)


def mend() -> None:
    """Do so, once and for all."""
    interpreter._patch_lang_tensor = _patch_tensors_and_index
    interpreter._patch_lang = _patch_both_names
    interpreter.InterpretedFunction.__call__ = _call
    # Each sum and product of integers is computed again in 64 bits, for an assertion that nobody looks at.
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)
