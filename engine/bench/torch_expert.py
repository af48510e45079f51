"""The same expert in torch: three bf16 products on plain matrices, what programs without kernels do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.functional import linear, silu


def torch_expert(x: Tensor, flat: Tensor, intermediate: int) -> Tensor:
    """w2 (silu(w1 x) ⊙ w3 x) for x [tokens, hidden]; `flat` holds w1, w3, w2 one after the other."""
    hidden = x.shape[1]
    size = hidden * intermediate
    w1, w3 = flat[:size].view(intermediate, hidden), flat[size : 2 * size].view(intermediate, hidden)
    w2 = flat[2 * size : 3 * size].view(hidden, intermediate)
    return linear(silu(linear(x, w1)) * linear(x, w3), w2)


def torch_call(
    blocks: list[Tensor], hidden: int, intermediate: int, tokens: int, experts: int
) -> Callable[[], None]:
    """A call that runs the next `experts` experts in turn, each on `tokens` tokens.

    `blocks`: uint8 memory of at least three bf16 matrices [intermediate, hidden] each, of ordinary numbers.
    """
    x = torch.randn(tokens, hidden).bfloat16()
    turns = itertools.cycle([block.view(torch.bfloat16) for block in blocks])

    def call() -> None:
        for flat in itertools.islice(turns, experts):
            torch_expert(x, flat, intermediate)

    return call


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let torch use as many threads as the kernels, for the time being."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
