"""One large piece of host memory, returned to the system when nothing refers to it any more."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys

import torch

from engine import numa
from engine.errors import MemoryFullError
from engine.units import format_bytes


def allocate(nbytes: int) -> torch.Tensor:
    """`nbytes` zero bytes as a uint8 tensor, page aligned; pages take memory once they are written.

    An anonymous mapping of our own: on Linux it asks for huge pages, which spares the kernels most of the
    address translation (two cores of a virtual machine read 29 GB/s from huge pages and 15 from small ones),
    and unlike torch's pinned allocator it does not round up to a power of two. Where the machine has several
    memory nodes, its pages come from all of them in turns.

    Raises:
        MemoryFullError: the system refuses the address space.
    """
    try:
        arena = _map(max(nbytes, 1))
    except (OSError, ValueError, OverflowError) as error:
        raise MemoryFullError(
            f"There is not enough memory for the model ({format_bytes(nbytes)} in one piece).",
            why=f"The system says: {error}.",
            action="Close other programs, or choose a smaller model.",
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages: slower, nothing else
            arena.madvise(mmap.MADV_HUGEPAGE)
    memory = torch.frombuffer(arena, dtype=torch.uint8)
    nodes = numa.memory_nodes()
    if len(nodes) > 1:
        numa.spread(memory.data_ptr(), len(memory), nodes)
    return memory[:nbytes]


def _map(nbytes: int) -> mmap.mmap:
    """An anonymous mapping. A private one: Linux gives shared memory no huge pages unless told to."""
    if sys.platform == "win32":
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def give_back(memory: torch.Tensor) -> bool:
    """Return the whole pages of a part of an arena to the system: they read as zeros, and take no memory.

    Of a huge page of which only a part is given back, the kernel splits off that part. Returns False where
    there is no such call (Windows), or the system refuses it (to a program whose memory is locked): nothing
    happens then, and the memory stays in use.
    """
    if not hasattr(mmap, "MADV_DONTNEED") or sys.platform == "win32":
        return False
    page = mmap.PAGESIZE
    begin = -(-memory.data_ptr() // page) * page
    end = (memory.data_ptr() + memory.numel()) // page * page
    if begin >= end:
        return True
    libc = ctypes.CDLL(None)
    advice = ctypes.c_int(mmap.MADV_DONTNEED)
    return bool(libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice) == 0)
