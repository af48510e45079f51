"""Costs of machines for the tests of policies: a simple one of few numbers, and a measured server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from engine.costs import AtOnce
from engine.latency import Curve, LatencyModel, Together


@dataclass(frozen=True)
class SimpleCosts:
    """The CPU linear in the tokens, GPU and copies constant, as in the paper; and both sides disturbed."""

    cpu: float
    gpu: float
    transfer: float
    slowdown: float = 1.0
    stretch: float = 1.0
    cpu_start: float = 0.0
    copy_start: float = 0.0
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def cpu_lat(self, tokens: float) -> float:
        return self.cpu * tokens

    def gpu_lat(self, tokens: float = 1) -> float:
        return self.gpu

    def transfer_lat(self) -> float:
        return self.transfer

    def start_cpu(self) -> float:
        return self.cpu_start

    def start_copy(self) -> float:
        return self.copy_start

    def at_once(self, tokens: float) -> AtOnce:
        return AtOnce(self.slowdown, self.transfer * self.stretch)


simple_costs = st.builds(
    SimpleCosts,
    cpu=st.floats(0.01, 10),
    gpu=st.floats(0.01, 10),
    transfer=st.floats(0.01, 10),
    slowdown=st.floats(1, 3),
    stretch=st.floats(1, 3),
    cpu_start=st.floats(0, 0.01),
    copy_start=st.floats(0, 0.01),
)

# 16 cores of a Xeon with AMX, PCIe 5, Mixtral's experts in bf16: the CPU alone reads 107 GB/s and the link
# 55; at the same time 87 and 44. With many tokens the CPU computes more than it reads.
SERVER = LatencyModel(
    cpu=Curve.fit([(1, 3.3e-3), (16, 4.0e-3), (64, 5.8e-3), (256, 12e-3)]),
    other_decode=4e-3,
    gpu=Curve.fit([(1, 0.12e-3), (64, 0.12e-3), (256, 0.3e-3)]),
    transfer=6.4e-3,
    activation=Curve.fit([(1, 27e-6)]),
    together=Together((1, 256), (107 / 87, 1.05), (6.4e-3 * 55 / 44, 6.5e-3)),
    cpu_start=20e-6,
    copy_start=40e-6,
)
