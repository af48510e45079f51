"""Loads the native extension, with an explanation where that fails. Torch-free."""

from __future__ import annotations

import importlib
from typing import Any

from kernels.errors import NativeMissingError


def load() -> Any:
    """Return the module `kernels._native` (see csrc/bindings.cpp), or raise NativeMissingError."""
    try:
        return importlib.import_module("kernels._native")
    except ImportError as error:
        raise NativeMissingError(
            f"The native kernels cannot be loaded ({error}).",
            "Build them with `pip install .` in the project's folder (`make run` does it).",
        ) from error
