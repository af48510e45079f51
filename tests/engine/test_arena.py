"""Large host memory: zero, aligned, given back, and on Linux eligible for huge pages."""

import ctypes
import errno
import mmap
import sys
from pathlib import Path

import pytest

from engine import arena
from engine.errors import MemoryFullError


def test_the_arena_starts_at_zero_and_at_a_page():
    memory = arena.allocate(10_000)
    assert memory.shape == (10_000,)
    assert memory.count_nonzero() == 0
    assert memory.data_ptr() % 4096 == 0


def test_absurd_sizes_are_a_shortage():
    with pytest.raises(MemoryFullError, match="not enough memory"):
        arena.allocate(1 << 62)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's list of mappings")
def test_the_arena_may_have_huge_pages():
    """Private and advised ("hg"): whether the system then has any to give is its own business."""
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("the kernel has no transparent huge pages")
    memory = arena.allocate(8 << 20)
    address = memory.data_ptr()
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(part, 16) for part in words[0].split("-"))
            inside = begin <= address < end
            assert not inside or words[1].endswith("p")
        elif inside and words[0] == "VmFlags:":
            assert "hg" in words
            return
    pytest.fail("the mapping was not found")


def test_memory_without_huge_pages_is_memory(monkeypatch):
    class Small(mmap.mmap):
        def madvise(self, option):
            raise OSError(errno.EINVAL, "no huge pages here")

    monkeypatch.setattr(arena, "_map", lambda nbytes: Small(-1, nbytes))
    memory = arena.allocate(10_000)
    memory.fill_(1)
    assert memory.count_nonzero() == 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's figures")
@pytest.mark.parametrize(("begin", "end"), [(0, 64 << 20), (5, (40 << 20) + 77)])
def test_memory_given_back_is_free_and_reads_as_zero(begin, end):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    memory = arena.allocate(64 << 20)
    memory.fill_(1)
    before = resident()
    assert arena.give_back(memory[begin:end])
    assert before - resident() > (end - begin) * 0.9
    inside = memory[begin + 4096 : end - 4096]
    assert inside.count_nonzero() == 0
    assert bool((memory[:begin] == 1).all())
    assert bool((memory[end:] == 1).all())
    memory.fill_(2)  # still there to be written
    assert bool((memory == 2).all())


def test_less_than_a_page_is_kept():
    memory = arena.allocate(3 * 4096)
    memory.fill_(1)
    assert arena.give_back(memory[100:4000])
    assert bool((memory == 1).all())


@pytest.mark.skipif(sys.platform != "linux", reason="locks memory as Linux does")
def test_memory_that_the_system_does_not_take_back_stays():
    """As where all of a program's memory is locked."""
    libc, memory = ctypes.CDLL(None), arena.allocate(3 * 4096)
    memory.fill_(1)
    place = ctypes.c_void_p(memory.data_ptr()), ctypes.c_size_t(4096)
    if libc.mlock(*place):
        pytest.skip("no memory may be locked here")
    assert not arena.give_back(memory[:4096])
    assert bool((memory == 1).all())
    libc.munlock(*place)
    assert arena.give_back(memory[:4096])
