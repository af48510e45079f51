"""What a policy asks about the machine: the costs of one expert, in seconds. Torch-free."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class AtOnce(NamedTuple):
    """Rates while the CPU computes experts and others are copied to the GPU at the same time.

    Both read the same memory, so both are slower than alone: the CPU takes `cpu_slowdown` times as long, and
    copying one expert takes `copy_seconds`.
    """

    cpu_slowdown: float
    copy_seconds: float


class ExpertCosts(Protocol):
    """The latency model, as far as a policy asks it. Seconds for one expert unless said otherwise.

    `memo` is where a policy keeps plans that it made from these costs; whoever changes costs empties it.
    """

    @property
    def memo(self) -> dict[Any, Any]:
        """Plans by what they were made for."""
        ...

    def cpu_lat(self, tokens: float) -> float:
        """Running `tokens` tokens on the CPU, nothing being copied."""
        ...

    def gpu_lat(self, tokens: float = 1) -> float:
        """Running `tokens` tokens on the GPU, weights already there."""
        ...

    def transfer_lat(self) -> float:
        """Copying the expert's weights to the GPU while the CPU does nothing."""
        ...

    def start_cpu(self) -> float:
        """The part of a whole expert's time on the CPU that is not per panel: waking threads, adding up."""
        ...

    def start_copy(self) -> float:
        """The part of a whole expert's copy that is not per panel: starting it and noticing its end."""
        ...

    def at_once(self, tokens: float) -> AtOnce:
        """The rates with the CPU computing experts of `tokens` tokens while others are copied."""
        ...
