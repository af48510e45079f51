"""Pinning in the background, with a pinner that only takes notes, refuses, or is slow."""

import gc
import threading

import pytest
import torch

from engine.experts.register import CudaPinner, Registration


class NotedPinner:
    """Pins nothing; the blocks that count as pinned are in `pinned`, by address. Refuses from `limit` on."""

    def __init__(self, limit=100):
        self.limit = limit
        self.asked = 0
        self.pinned = []
        self.at_work = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def register(self, block):
        self.asked += 1
        self.at_work.set()
        assert self.go_on.wait(10)
        if len(self.pinned) >= self.limit:
            return False
        self.pinned.append(block.data_ptr())
        return True

    def unregister(self, block):
        self.pinned.remove(block.data_ptr())
        return True


def blocks(count=5):
    return list(torch.zeros(count, 4096, dtype=torch.uint8))


def test_all_blocks_are_pinned_in_order_and_released_at_the_end():
    pinner, memory = NotedPinner(), blocks()
    registration = Registration(memory, pinner)
    assert registration.wait(10)
    assert pinner.pinned == [block.data_ptr() for block in memory]
    assert all(registration.done(number) for number in range(5))
    assert not registration.done(5)
    assert registration.note == ""
    registration.close()
    assert pinner.pinned == []
    assert not registration.done(0)
    registration.close()  # once more is harmless


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_refusal_keeps_what_is_pinned_and_says_how_much(limit):
    pinner = NotedPinner(limit)
    registration = Registration(blocks(), pinner)
    assert registration.wait(10)
    assert pinner.asked == limit + 1  # not asked again and again
    assert [registration.done(number) for number in range(5)] == [True] * limit + [False] * (5 - limit)
    assert "small buffer" in registration.note
    assert f"{limit * 4} KiB" in registration.note or f"{limit * 4}.0 KiB" in registration.note or not limit
    registration.close()
    assert pinner.pinned == []


def test_an_error_is_a_refusal():
    class Failing(NotedPinner):
        def register(self, block):
            if len(self.pinned) == 2:
                raise RuntimeError("CUDA error: unknown error")
            return super().register(block)

    pinner = Failing()
    registration = Registration(blocks(), pinner)
    assert registration.wait(10)
    assert [registration.done(number) for number in range(5)] == [True, True, False, False, False]
    assert "small buffer" in registration.note
    registration.close()
    assert pinner.pinned == []


def test_closing_waits_for_the_block_under_way_only():
    pinner = NotedPinner()
    pinner.go_on.clear()
    registration = Registration(blocks(), pinner)
    assert pinner.at_work.wait(10)
    assert registration.running
    assert not registration.wait(0.01)
    closing = threading.Thread(target=registration.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()  # CUDA is at work on the block
    pinner.go_on.set()
    closing.join(10)
    assert not closing.is_alive()
    assert pinner.asked == 1
    assert pinner.pinned == []
    assert not registration.running


def test_one_that_nobody_closed_unpins_when_it_goes():
    pinner = NotedPinner()
    registration = Registration(blocks(), pinner)
    assert registration.wait(10)
    assert len(pinner.pinned) == 5
    del registration
    gc.collect()
    assert pinner.pinned == []
    assert not [thread for thread in threading.enumerate() if thread.name == "register"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_copies_from_what_it_pinned_and_a_refusal_leaves_no_error_behind():
    device = torch.device("cuda", torch.cuda.current_device())
    pinner, memory = CudaPinner(device), torch.randint(0, 256, (1 << 20,), dtype=torch.uint8)
    block = memory[-memory.data_ptr() % 4096 :][: 512 << 10]
    assert pinner.register(block)
    copy = torch.empty_like(block, device=device)
    copy.copy_(block, non_blocking=True)
    assert torch.equal(copy.cpu(), block)
    assert not pinner.register(block)  # it is already
    (copy.float() + 1).sum().item()
    torch.cuda.synchronize()
    assert pinner.unregister(block)
    assert not pinner.unregister(block)
    (copy.float() + 1).sum().item()
    torch.cuda.synchronize()
