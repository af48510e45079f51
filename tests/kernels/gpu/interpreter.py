"""Triton's interpreter, mended where it does not get along with this numpy."""

from __future__ import annotations

from typing import Any

from triton.runtime import interpreter

_patch_tensors = interpreter._patch_lang_tensor


def _patch_tensors_and_index(tensor: Any, scope: Any) -> None:
    """Let a loaded number end a range: Triton 3.6 makes it int() of an array [1], numpy 2.4 refuses."""
    _patch_tensors(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def mend() -> None:
    """Do so, once and for all."""
    interpreter._patch_lang_tensor = _patch_tensors_and_index
