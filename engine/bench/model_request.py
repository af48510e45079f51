"""What `fiddler bench model` and `fiddler bench compare` are asked to load and measure. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.bench.errors import BenchError
from engine.bench.presets import preset_info
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.options import LoadOptions

DEFAULT_PRESET = "mixtral-8x7b"
MAX_TOKENS = 1 << 20
WARM_UP = (16, 4)  # tokens of a prompt, and single ones, whose times do not count


@dataclass(frozen=True)
class Subject:
    """The model to load and how its experts are chosen.

    `folder`: a real model, routed by its own routers; None for `preset` with random weights, with `layers`
    layers (None: all), whose routing has `zipf`, `reuse` and `seed` (see RoutingSource).
    """

    options: LoadOptions = field(default_factory=LoadOptions)
    folder: Path | None = None
    preset: str = DEFAULT_PRESET
    layers: int | None = None
    zipf: float = 0.0
    reuse: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.zipf <= 8:
            raise BenchError(f"--zipf cannot be {self.zipf:g}.", action="Choose a number from 0 to 8.")
        if not 0 <= self.reuse <= 1:
            raise BenchError(f"--reuse cannot be {self.reuse:g}.", action="Choose a number from 0 to 1.")
        if not 0 <= self.seed < 1 << 63:
            raise BenchError(f"--seed cannot be {self.seed}.", action="Choose a number from 0 on.")
        if self.folder is None:
            preset_info(self.preset, self.layers)
        elif self.layers is not None or self.zipf or self.reuse or self.seed:
            raise BenchError(
                "A real model has its own layers and its own routing.",
                action="Leave --layers, --zipf, --reuse and --seed out, or choose a --preset.",
            )

    def info(self) -> ModelInfo:
        """The model's sizes. Raises CheckpointError for a folder without a usable model."""
        return preset_info(self.preset, self.layers) if self.folder is None else inspect_model(self.folder)

    def routing_text(self) -> str:
        """How experts are chosen, in words."""
        if self.folder is not None:
            return "by its routers"
        text = "uniform" if not self.zipf else f"Zipf exponent {self.zipf:g}"
        return f"{text}, {self.reuse:.0%} of tokens as the one before" if self.reuse else text


def context_of(prompts: tuple[int, ...], decode: int) -> int:
    """Tokens of context that the longest prompt and what is decoded after it take, warming up included."""
    return max(max(prompts) + decode, sum(WARM_UP)) + 1


@dataclass(frozen=True)
class ModelRequest:
    """One run of `fiddler bench model`: each prompt length `repeats` times, then `decode` tokens.

    `soak`: tokens of many conversations afterwards; 0 for none.
    """

    subject: Subject
    prompts: tuple[int, ...] = (32, 512)
    decode: int = 32
    repeats: int = 3
    soak: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.decode <= MAX_TOKENS:
            raise BenchError(f"1 to {MAX_TOKENS} tokens can be decoded, not {self.decode}.")
        if not 1 <= self.repeats <= 100:
            raise BenchError(f"A prompt is read 1 to 100 times, not {self.repeats}.")
        if not 0 <= self.soak <= MAX_TOKENS:
            raise BenchError(f"--soak writes up to {MAX_TOKENS} tokens, not {self.soak}.")

    @property
    def context(self) -> int:
        """Tokens of context that the longest prompt and what is written after it take."""
        return context_of(self.prompts, self.decode)

    def check_context(self, info: ModelInfo) -> None:
        """Raise BenchError if the model was made for less context."""
        if self.context > info.context_length:
            raise BenchError(
                f"{info.name} holds {info.context_length} tokens in its context, not {self.context}.",
                action="Choose shorter --prompts or fewer --tokens.",
            )
