"""How cyclic garbage is collected when its memory is needed at once. Torch-free.

Exceptions and what they refer to are such garbage: a failed attempt's tensors are freed with it. A program
whose objects must not die in just any thread, as those of Qt must not, sets its own way.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

_collector: Callable[[], object] = gc.collect


def collect() -> None:
    """Collect it now, or have it collected, before this returns."""
    _collector()


def set_collector(collector: Callable[[], object] = gc.collect) -> None:
    """Let `collector`, which may be called from any thread, do it from now on."""
    global _collector
    _collector = collector
