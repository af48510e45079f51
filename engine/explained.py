"""Errors of the libraries below the engine, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.errors import HardwareError, MemoryFullError
from kernels.errors import KernelsError

_NO_MEMORY = re.compile(r"CUDA\b.*\bout of memory")  # torch's words, and Triton's
_NO_HOST_MEMORY = "DefaultCPUAllocator: "  # torch's, which are no MemoryError


@contextmanager
def explained() -> Iterator[None]:
    """Raise the engine's own errors for the kernels', and for memory that ran out.

    Raises:
        HardwareError: for a KernelsError.
        MemoryFullError: for torch.OutOfMemoryError (the GPU's), MemoryError, and a RuntimeError in which
            torch says that the computer has no memory, or CUDA that it got none: of the computer's, to pin
            it, or of its own, for a graph.
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
        raise _computer_full() from error
    except RuntimeError as error:
        if _NO_HOST_MEMORY in str(error):
            raise _computer_full() from error
        if not _NO_MEMORY.search(str(error)):
            raise
        raise MemoryFullError(
            "The graphics card's driver could not get memory.",
            why="It needs some of the computer's memory for itself, and some of the graphics card's.",
            action="Close other programs, choose a shorter context, or load again with a smaller budget.",
        ) from error


def _computer_full() -> MemoryFullError:
    return MemoryFullError(
        "The computer's memory is full.", action="Close other programs, or choose a shorter context."
    )
