"""Pinning the arena in the background, so that the GPU copies from it directly and at full speed."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Sequence
from typing import Protocol

import torch

from engine.units import format_bytes


class Pinner(Protocol):
    """Pins memory, block by block."""

    def register(self, block: torch.Tensor) -> bool:
        """Pin a block, uint8 [n] on the host; False if the system refuses."""
        ...

    def unregister(self, block: torch.Tensor) -> bool:
        """Undo `register`; False if the block was not pinned."""
        ...


class CudaPinner:
    """Pins memory for CUDA. For a device, whose context it needs."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def register(self, block: torch.Tensor) -> bool:
        """cudaHostRegister, which makes the pages' copies asynchronous; the GIL is released meanwhile."""
        with torch.cuda.device(self._device):
            cudart = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            return self._agreed(cudart.cudaHostRegister(block.data_ptr(), block.numel(), 0))

    def unregister(self, block: torch.Tensor) -> bool:
        """cudaHostUnregister."""
        with torch.cuda.device(self._device):
            cudart = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            return self._agreed(cudart.cudaHostUnregister(block.data_ptr()))

    def _agreed(self, result: object) -> bool:
        """Whether a call of CUDA's runtime succeeded.

        A failed one stays "the last error" of this thread until somebody asks for it, and torch asks after
        its next kernel, which would then get the blame. So one is run here for that purpose.
        """
        if int(result) == 0:  # type: ignore[call-overload]
            return True
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device=self._device).add_(1)
        return False


class Registration:
    """Pins blocks of host memory one after the other, in a thread of its own, while the model is in use.

    A block is registered with CUDA as a whole (20 GB/s were measured, so 90 GB take some five seconds) and
    stays so until `close`, which must come before the memory is given back: CUDA would go on believing in
    the pages. What the system does not let us pin (Windows allows about half of the memory, containers often
    a few megabytes) is left as it is after the first refusal, and `note` says so.
    """

    def __init__(self, blocks: Sequence[torch.Tensor], pinner: Pinner) -> None:
        self._pins = _Pins(blocks, pinner)
        self._thread = threading.Thread(target=self._pins.run, name="register")
        # Whoever forgets to close must not leave pages registered whose addresses others then get.
        self._finalizer = weakref.finalize(self, _close, self._pins, self._thread)
        self._thread.start()

    def done(self, index: int) -> bool:
        """Whether block number `index` is pinned."""
        return index < self._pins.count

    @property
    def running(self) -> bool:
        """Whether blocks are still being pinned."""
        return self._thread.is_alive()

    @property
    def note(self) -> str:
        """A sentence for the user if something could not be pinned; empty otherwise."""
        return self._pins.note

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything is pinned or refused, at most `timeout` seconds; whether that is so."""
        self._thread.join(timeout)
        return not self.running

    def close(self) -> None:
        """Stop, wait for the block under way, and unpin. No copy from the memory may be on its way."""
        self._finalizer()


class _Pins:
    """What the thread and the owner share. `count` blocks, the first ones, are pinned."""

    def __init__(self, blocks: Sequence[torch.Tensor], pinner: Pinner) -> None:
        self.blocks = list(blocks)
        self.pinner = pinner
        self.stop = threading.Event()
        self.count = 0
        self.note = ""

    def run(self) -> None:
        for block in self.blocks:
            if self.stop.is_set():
                return
            try:
                agreed = self.pinner.register(block)
            except RuntimeError:  # torch's errors of CUDA: the ring will meet it, where somebody is told
                agreed = False
            if not agreed:
                self.note = self._refusal()
                return
            self.count += 1

    def _refusal(self) -> str:
        done, total = (
            sum(len(block) for block in blocks) for blocks in (self.blocks[: self.count], self.blocks)
        )
        return (
            f"The system let only {format_bytes(done)} of the experts' {format_bytes(total)} be pinned for "
            "the graphics card: the others are copied to it through a small buffer, which takes longer."
        )


def _close(pins: _Pins, thread: threading.Thread) -> None:
    pins.stop.set()
    thread.join()
    while pins.count:
        pins.count -= 1
        pins.pinner.unregister(pins.blocks[pins.count])
    pins.blocks.clear()
