"""What `fiddler bench model` measured, as plain data. Torch-free."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.bench.rates import Rates


@dataclass(frozen=True)
class PromptFigure:
    """A prompt of `tokens` tokens: `seconds` to the first token's logits (the median of `repeats`).

    `floor`: see `roofline.prefill_seconds`.
    """

    tokens: int
    seconds: float
    repeats: int
    floor: float

    @property
    def ratio(self) -> float:
        """The time in multiples of the floor; 0 if nothing had to be copied."""
        return self.seconds / self.floor if self.floor else 0.0


@dataclass(frozen=True)
class DecodeFigure:
    """`tokens` single tokens: seconds of one (mean, median, the slowest), and the floor of the mean.

    `resident`: the share of experts' executions whose expert lay on the GPU.
    """

    tokens: int
    mean: float
    median: float
    slowest: float
    floor: float
    resident: float

    @property
    def tokens_per_second(self) -> float:
        """Over all of them."""
        return 1 / self.mean

    @property
    def percent(self) -> float:
        """The floor in percent of the time: 100 is what the machine allows."""
        return 100 * self.floor / self.mean

    @property
    def beyond(self) -> float:
        """Seconds of a token beyond the floor."""
        return self.mean - self.floor


@dataclass
class ModelReport:
    """A run as far as it got. `model` and `machine` say what was measured where."""

    model: dict[str, Any]
    machine: dict[str, Any]
    rates: Rates | None = None
    prompts: list[PromptFigure] = field(default_factory=list)
    decode: DecodeFigure | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    accounting: dict[str, Any] = field(default_factory=dict)
    soak: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    complete: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. Times in seconds."""
        decode = None
        if self.decode is not None:
            decode = asdict(self.decode) | {
                "tokens_per_second": self.decode.tokens_per_second,
                "percent_of_roofline": self.decode.percent,
            }
        return {
            "machine": self.machine,
            "model": self.model,
            "rates": None
            if self.rates is None
            else self.rates.to_dict() | {"cpu_share": self.rates.cpu_share},
            "prompts": [asdict(each) | {"ratio": each.ratio} for each in self.prompts],
            "decode": decode,
            "accounting": self.accounting,
            "memory": self.memory,
            "soak": self.soak,
            "notes": list(self.notes),
            "complete": self.complete,
        }
