"""What `fiddler bench kernels` is asked to measure, checked before anything is allocated. Torch-free."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from engine.bench.errors import BenchError
from engine.errors import HardwareError
from kernels.errors import KernelsError
from kernels.formats import WeightFormat
from kernels.isa import Isa, available_isas, check_available, default_isa

# Hidden and intermediate sizes of an expert, in this order.
SHAPES = {"mixtral": (4096, 14336), "starter": (576, 768)}
DEFAULT_TOKENS = (1, 2, 4, 8, 16, 64, 256)
MAX_TOKENS, MAX_EXPERTS, MAX_SECONDS = 4096, 64, 60.0
MAX_THREADS = 1024  # torch, which gets as many, crashes with a hundred thousand


@dataclass(frozen=True)
class KernelRequest:
    """One run: every format × instruction set × token count at one shape.

    `experts`: experts of one call, as a layer has them (Mixtral uses two per token); each gets all of the
    tokens. `seconds`: for each figure. `threads`: None for the usable cores. `exact_activations`: no kernel
    may round them to 8 bits.
    """

    formats: tuple[WeightFormat, ...] = tuple(WeightFormat)
    isas: tuple[Isa, ...] = ()
    tokens: tuple[int, ...] = DEFAULT_TOKENS
    hidden: int = SHAPES["mixtral"][0]
    intermediate: int = SHAPES["mixtral"][1]
    experts: int = 2
    seconds: float = 0.5  # all figures and their tuning: some minutes, also on two cores
    threads: int | None = None
    exact_activations: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.experts <= MAX_EXPERTS:
            raise BenchError(f"One call takes 1 to {MAX_EXPERTS} experts, not {self.experts}.")
        if not (math.isfinite(self.seconds) and 0 < self.seconds <= MAX_SECONDS):
            raise BenchError(
                f"A figure takes more than 0 and up to {MAX_SECONDS:.0f} seconds, not {self.seconds:g}."
            )
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise BenchError(f"A run takes 1 to {MAX_THREADS} threads, not {self.threads}.")


def parse_formats(text: str) -> tuple[WeightFormat, ...]:
    """The formats of a list such as "bf16,int4", in its order. Raises BenchError."""
    names = _words(text, "format")
    for name in names:
        if name not in list(WeightFormat):
            raise BenchError(
                f"There is no weight format “{name}”.", action=f"Choose from {', '.join(WeightFormat)}."
            )
    return tuple(WeightFormat(name) for name in names)


def parse_isas(text: str | None) -> tuple[Isa, ...]:
    """The instruction set levels of a list such as "avx2,amx"; None: all that this machine may use.

    Raises BenchError for one that does not exist, HardwareError for one that this machine lacks.
    """
    try:
        if text is None:
            best = default_isa()
            return tuple(isa for isa in available_isas() if isa <= best)
        names = _words(text, "instruction set")
        for name in names:
            if name not in list(Isa):
                raise BenchError(
                    f"There is no instruction set level “{name}”.", action=f"Choose from {', '.join(Isa)}."
                )
        return tuple(check_available(Isa(name), "--isa asks for") for name in names)
    except KernelsError as error:
        raise HardwareError(error.what, action=error.action) from error


def parse_tokens(text: str) -> tuple[int, ...]:
    """The token counts of a list such as "1,2,64", ascending. Raises BenchError."""
    counts = []
    for word in _words(text, "number of tokens"):
        if not re.fullmatch("[0-9]{1,9}", word) or not 1 <= int(word) <= MAX_TOKENS:
            raise BenchError(
                f"“{word}” is no number of tokens.", action=f"Give numbers from 1 to {MAX_TOKENS}, as 1,4,64."
            )
        counts.append(int(word))
    return tuple(sorted(set(counts)))


def _words(text: str, what: str) -> list[str]:
    """The words between commas, each once."""
    words = list(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    if not words:
        raise BenchError(f"At least one {what} is needed.")
    return words
