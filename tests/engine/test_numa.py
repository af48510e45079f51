"""Which memory nodes there are, and the real call that spreads memory over them."""

import mmap
import platform
import sys
from pathlib import Path

import pytest
import torch

from engine import arena, numa

REAL = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="makes a Linux call"
)


def nodes_of(tmp_path, present, allowed):
    (tmp_path / "has_memory").write_text(f"{present}\n")
    (tmp_path / "status").write_text(f"Name:\tpython\nMems_allowed_list:\t{allowed}\n")
    return numa.memory_nodes(tmp_path / "has_memory", tmp_path / "status")


@pytest.mark.parametrize(
    ("present", "allowed", "nodes"),
    [
        ("0", "0", (0,)),
        ("0-1", "0-1", (0, 1)),
        ("0-3", "1,3", (1, 3)),
        ("0,2-4", "0-7", (0, 2, 3, 4)),
        ("0-1", "1", (1,)),
    ],
)
def test_nodes_are_those_with_memory_that_may_be_used(tmp_path, present, allowed, nodes):
    assert nodes_of(tmp_path, present, allowed) == nodes


@pytest.mark.parametrize(("present", "allowed"), [("", "0"), ("0", ""), ("none", "0")])
def test_lists_that_say_nothing_mean_no_nodes(tmp_path, present, allowed):
    assert nodes_of(tmp_path, present, allowed) == ()


def test_a_system_without_the_lists_has_no_nodes(tmp_path):
    assert numa.memory_nodes(tmp_path / "no", tmp_path / "neither") == ()


def policy_of(address):
    """The kernel's policy word for the mapping that begins at `address`."""
    for line in Path("/proc/self/numa_maps").read_text().splitlines():
        words = line.split()
        if int(words[0], 16) == address:
            return words[1]
    pytest.fail("the mapping was not found")


@REAL
def test_the_kernel_notes_that_memory_is_spread():
    nodes = numa.memory_nodes()
    if not nodes or not Path("/proc/self/numa_maps").exists():
        pytest.skip("the kernel knows no memory nodes")
    memory = torch.frombuffer(
        mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype=torch.uint8
    )
    if not numa.spread(memory.data_ptr(), len(memory), nodes):
        pytest.skip("the system refuses the call here")
    assert policy_of(memory.data_ptr()).startswith("interleave")
    memory.fill_(1)
    assert int(memory.sum(dtype=torch.int64)) == len(memory)


@REAL
def test_a_refused_call_is_told():
    assert not numa.spread(1, 4096, [0])  # no page begins at 1


def test_no_nodes_are_nothing_to_spread_over():
    assert not numa.spread(0, 4096, [])


@pytest.mark.parametrize(("nodes", "calls"), [((), 0), ((0,), 0), ((0, 1), 1)])
def test_the_arena_is_spread_over_several_nodes_only(monkeypatch, nodes, calls):
    made = []

    def refused(address, nbytes, over):
        made.append((address, nbytes, over))
        return False

    monkeypatch.setattr(numa, "memory_nodes", lambda: nodes)
    monkeypatch.setattr(numa, "spread", refused)
    memory = arena.allocate(10_000)
    assert len(made) == calls
    assert memory.count_nonzero() == 0
    for address, nbytes, over in made:
        assert address == memory.data_ptr()
        assert nbytes >= 10_000
        assert over == nodes
