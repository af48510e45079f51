"""The instruction set levels of the CPU kernels, and which one to use. Torch-free."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import total_ordering

from kernels import native
from kernels.errors import IsaError

MAX_ISA_VARIABLE = "FIDDLER_MAX_ISA"


@total_ordering
class Isa(StrEnum):
    """A level of instructions; each includes the ones before it, and they compare in this order.

    AMX multiplies in tiles from five tokens for an expert on, or as many as `kernels.tuning` says; fewer, and
    weights of 8 and 4 bits that are not expanded to bf16, it multiplies as AVX512_BF16 does.
    """

    PORTABLE = "portable"
    AVX2 = "avx2"
    AVX512 = "avx512"
    AVX512_BF16 = "avx512_bf16"
    AMX = "amx"

    @property
    def level(self) -> int:
        """Position in the order, 0 for portable."""
        return list(Isa).index(self)

    def __lt__(self, other: object) -> bool:
        return self.level < other.level if isinstance(other, Isa) else NotImplemented

    # str has comparisons of its own, which total_ordering would leave in place.
    def __le__(self, other: object) -> bool:
        return self.level <= other.level if isinstance(other, Isa) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.level > other.level if isinstance(other, Isa) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.level >= other.level if isinstance(other, Isa) else NotImplemented


def available_isas() -> tuple[Isa, ...]:
    """Return the levels that can run here, ascending.

    The CPU has the instructions (CPUID), the operating system saves their registers (XCR0, and for AMX the
    permission that Linux gives a process on request), and the build contains the kernels.
    """
    return tuple(Isa(name) for name in native.load().available_isas())


def default_isa() -> Isa:
    """Return the best available level, at most the one that the variable FIDDLER_MAX_ISA names.

    Raises IsaError if the variable names no level, or one that this machine does not have: a test that asks
    for AVX-512 must not silently pass on AVX2.
    """
    available = available_isas()
    name = os.environ.get(MAX_ISA_VARIABLE, "").strip().lower()
    if not name:
        return available[-1]
    if name not in list(Isa):
        raise IsaError(
            f"{MAX_ISA_VARIABLE} is set to {name!r}, which is no instruction set level.",
            f"Set it to one of {', '.join(Isa)}, or unset it.",
        )
    return check_available(Isa(name), f"{MAX_ISA_VARIABLE} asks for")


def check_available(isa: Isa, who: str = "The caller asks for") -> Isa:
    """Return `isa`, or raise IsaError where this machine does not have it."""
    available = available_isas()
    if isa not in available:
        raise IsaError(
            f"{who} {isa}, but this machine's best instruction set level is {available[-1]}.",
            f"Choose one of {', '.join(available)}.",
        )
    return isa
