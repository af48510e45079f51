"""What to do when the GPU's memory does not suffice after all: less at a time, or a smaller budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from engine import garbage

T = TypeVar("T")

LOADING_ATTEMPTS = 4
_BUDGET_SHARE = 0.9  # of the last attempt's


def free_unused() -> None:
    """Return to the GPU what no tensor uses any more; safe without one."""
    garbage.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def with_smaller_budgets(
    load: Callable[[int], T], budget: int, free: Callable[[], None] = free_unused
) -> tuple[T, int]:
    """`load(budget)`, with 10 % less after each failure; the result, and the budget that it was reached with.

    `load` must have let go of everything when it fails. Raises the last torch.OutOfMemoryError after four
    attempts; anything else at once.
    """
    for _ in range(LOADING_ATTEMPTS - 1):
        try:
            return load(budget), budget
        except torch.OutOfMemoryError:
            budget = int(budget * _BUDGET_SHARE)
        free()  # not in the handler: the exception still refers to what the failed attempt had
    return load(budget), budget


def with_smaller_chunks(
    run: Callable[[int], T], chunk: int, free: Callable[[], None] = free_unused, least: int = 16
) -> tuple[T, int]:
    """`run(chunk)`, with half as many tokens after each failure; the result, and the chunk that fitted.

    `run` must be able to begin again after an error. Raises torch.OutOfMemoryError where even `least` tokens
    do not fit.
    """
    while True:
        try:
            return run(chunk), chunk
        except torch.OutOfMemoryError:
            if chunk <= least:
                raise
            chunk = max(least, chunk // 2)
        free()
