"""Errors of the libraries below the engine, in the user's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.errors import HardwareError, MemoryFullError
from kernels.errors import KernelsError


@contextmanager
def explained() -> Iterator[None]:
    """Raise the engine's own errors for the kernels', and for memory that ran out.

    Raises:
        HardwareError: for a KernelsError.
        MemoryFullError: for torch.OutOfMemoryError (the GPU's) and MemoryError.
    """
    try:
        yield
    except KernelsError as error:
        raise HardwareError(error.what, action=error.action) from error
    except torch.OutOfMemoryError as error:
        raise MemoryFullError(
            "The graphics card's memory is full.",
            why="Other programs may have taken some of it since the model was planned.",
            action="Close programs that use the graphics card, or load again with a smaller budget.",
        ) from error
    except MemoryError as error:
        raise MemoryFullError(
            "The computer's memory is full.", action="Close other programs, or choose a shorter context."
        ) from error
