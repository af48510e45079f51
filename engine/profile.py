"""A calibration's result: what was measured on this machine for one model, as versioned JSON. Torch-free.

Finding and saving profiles is `engine/profile_store.py`'s job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import DAMAGED, CalibrationError
from engine.hardware.facts import fingerprint_of
from engine.kernel_choice import KernelChoice
from engine.latency import LatencyModel
from engine.precision import PRECISIONS
from engine.units import format_seconds
from kernels.formats import WeightFormat

VERSION = 2  # 1: CPU and copies were measured one after the other only


class ProbeKind(StrEnum):
    """What a probe measures."""

    KERNELS = "kernels"
    CPU_EXPERT = "cpu_expert"
    GPU_EXPERT = "gpu_expert"
    WEIGHT_COPY = "weight_copy"
    CPU_START = "cpu_start"
    COPY_START = "copy_start"
    CPU_ALONE = "cpu_alone"
    CPU_TOGETHER = "cpu_together"
    COPY_TOGETHER = "copy_together"
    ACTIVATION_COPY = "activation_copy"
    OTHER_DECODE = "other_decode"
    POPULARITY = "popularity"
    DECODE = "decode"


_GOOD_ERROR = 0.25  # of the predicted decode time against the measured one, on an idle computer
_NOT_BY_TOKENS = (
    ProbeKind.WEIGHT_COPY,
    ProbeKind.CPU_START,
    ProbeKind.COPY_START,
    ProbeKind.OTHER_DECODE,
    ProbeKind.POPULARITY,
    ProbeKind.DECODE,
)
_PROBE_NAMES = {
    ProbeKind.KERNELS: "One expert with the fastest kernels",
    ProbeKind.CPU_EXPERT: "One expert on the CPU",
    ProbeKind.GPU_EXPERT: "One expert on the GPU",
    ProbeKind.WEIGHT_COPY: "Copying one expert to the GPU",
    ProbeKind.CPU_START: "Starting the CPU's threads",
    ProbeKind.COPY_START: "Starting a copy to the GPU",
    ProbeKind.CPU_ALONE: "One expert on the CPU, call after call",
    ProbeKind.CPU_TOGETHER: "One expert on the CPU while others are copied",
    ProbeKind.COPY_TOGETHER: "Copying one expert while the CPU works",
    ProbeKind.ACTIVATION_COPY: "Activations to the CPU and back",
    ProbeKind.OTHER_DECODE: "A decode step without its experts",
    ProbeKind.POPULARITY: "Reading the profile text, per token",
    ProbeKind.DECODE: "A whole decode step",
}


@dataclass(frozen=True)
class Probe:
    """One measurement: the median time in seconds of `kind` with `tokens` tokens (0: not per token count).

    `spread` is the interquartile range over the median of its repetitions: how far to trust it.
    """

    kind: ProbeKind
    tokens: int
    seconds: float
    spread: float = 0.0

    @property
    def name(self) -> str:
        """What was measured, in words, with the token count where it matters."""
        name = _PROBE_NAMES[self.kind]
        if self.kind not in _NOT_BY_TOKENS:
            return f"{name}, {self.tokens} token{'s' if self.tokens != 1 else ''}"
        return name

    def text(self) -> str:
        """The probe as one line: "One expert on the CPU, 4 tokens: 3.10 ms"."""
        return f"{self.name}: {format_seconds(self.seconds)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": str(self.kind), "tokens": self.tokens, "seconds": self.seconds, "spread": self.spread}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Probe:
        """Read what `to_dict` wrote; raises KeyError, TypeError or ValueError on anything else."""
        return Probe(
            ProbeKind(data["kind"]), int(data["tokens"]), float(data["seconds"]), float(data["spread"])
        )


@dataclass(frozen=True)
class Profile:
    """What a calibration learned. Times in seconds.

    `hardware` and `model` are the fingerprints' parts by their human names. `popularity` is float64 [layers,
    experts], the chance that a token chooses the expert (rows sum to top-k). `expert_slots` were resident
    when the decode step was predicted and measured. `precision` is what the experts were held in: times for
    one are not those for another. `kernels` were chosen first, and all times are with them; None in files
    from before there was a choice. `exact_activations`: rounding them to 8 bits was forbidden.
    """

    model_name: str
    hardware: dict[str, str]
    model: dict[str, str]
    created: str  # ISO 8601, UTC
    threads: int
    latency: LatencyModel
    popularity: npt.NDArray[np.float64]
    probes: tuple[Probe, ...]
    expert_slots: int
    predicted_decode: float
    measured_decode: float
    precision: str = str(WeightFormat.BF16)
    kernels: KernelChoice | None = None
    exact_activations: bool = False
    version: int = field(default=VERSION)

    @property
    def fingerprint(self) -> tuple[str, str]:
        """The hardware's and the model's fingerprint."""
        return fingerprint_of(self.hardware), fingerprint_of(self.model)

    @property
    def prediction_error(self) -> float:
        """Relative error of the predicted decode step against the measured one: +0.1 is 10% too slow."""
        return self.predicted_decode / self.measured_decode - 1

    @property
    def doubtful(self) -> bool:
        """Whether the prediction misses the measurement by more than a good calibration does."""
        return abs(self.prediction_error) > _GOOD_ERROR

    @property
    def predicted_tokens_per_second(self) -> float:
        """Decode speed that the latency model predicts."""
        return 1 / self.predicted_decode

    @property
    def measured_tokens_per_second(self) -> float:
        """Decode speed that was measured right after."""
        return 1 / self.measured_decode

    def summary(self) -> tuple[str, ...]:
        """Lines for people: predicted against measured, whether to doubt it, and how well the model fits."""
        fit, error = self.latency.fit_error, self.prediction_error
        doubt = ("Other programs may have disturbed this: calibrate again while they rest.",)
        return (
            f"Predicted {self.predicted_tokens_per_second:.1f} tokens per second, "
            f"measured {self.measured_tokens_per_second:.1f}: the time was predicted {abs(error):.0%} too "
            f"{'long' if error > 0 else 'short'}.",
            *(doubt if self.doubtful else ()),
            f"The CPU's times are within {fit:.0%} of a straight line on average.",
            *self.remarks,
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what was chosen and found: both sides at the same time, and the kernels."""
        together = () if self.latency.together is None else (self._together_text(),)
        return (*together, *(() if self.kernels is None else (self.kernels.text(),)))

    def _together_text(self) -> str:
        slowdown, copy_seconds = self.latency.at_once(1)
        stretch = copy_seconds / self.latency.transfer_lat()
        gain = 1 / slowdown + self.latency.cpu_lat(1) / copy_seconds
        return (
            f"While experts are copied the CPU takes {slowdown:.2f} times as long and a copy {stretch:.2f} "
            f"times: together they do {gain:.2f} times as much as the CPU alone."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `fit_error` and `prediction_error` are there for readers."""
        return {
            "version": self.version,
            "model_name": self.model_name,
            "hardware": self.hardware,
            "model": self.model,
            "created": self.created,
            "precision": self.precision,
            "kernels": None if self.kernels is None else self.kernels.to_dict(),
            "exact_activations": self.exact_activations,
            "threads": self.threads,
            "latency": self.latency.to_dict(),
            "popularity": np.round(self.popularity, 6).tolist(),
            "probes": [probe.to_dict() for probe in self.probes],
            "expert_slots": self.expert_slots,
            "predicted_decode": self.predicted_decode,
            "measured_decode": self.measured_decode,
            "fit_error": self.latency.fit_error,
            "prediction_error": self.prediction_error,
        }

    @staticmethod
    def from_json(text: str) -> Profile:
        """Read a profile file's text. Raises `CalibrationError` with the reason if it is not one."""
        try:
            data = json.loads(text)
            older = data["version"] in range(1, VERSION)
            profile = None if older else Profile._from_dict(data)
        except (*DAMAGED, CalibrationError) as error:
            raise CalibrationError(
                "The saved calibration cannot be read.",
                why=f"Its file is damaged or from another version ({_first_line(error)}).",
                action="Calibrate again; the old file is kept aside.",
            ) from error
        if profile is None:
            raise CalibrationError(
                "The saved calibration is from an older version of this program.",
                why="It does not say how fast the CPU and copies to the graphics card are at the same time.",
                action="Calibrate again; the old file is kept aside.",
            )
        return profile

    def to_json(self) -> str:
        """The text of a profile file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def _from_dict(data: dict[str, Any]) -> Profile:
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']!r}, this program reads {VERSION}")
        popularity = np.asarray(data["popularity"], dtype=np.float64)
        if popularity.ndim != 2 or not np.isfinite(popularity).all() or (popularity < 0).any():
            raise ValueError("popularity is not a table of chances")
        predicted, measured = float(data["predicted_decode"]), float(data["measured_decode"])
        if not (0 < predicted < float("inf") and 0 < measured < float("inf")):
            raise ValueError("a decode time is not a positive number")
        precision = str(data.get("precision", WeightFormat.BF16))  # before there was a choice: bf16
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r}")
        kernels = data.get("kernels")
        return Profile(
            model_name=str(data["model_name"]),
            hardware=_texts(data["hardware"]),
            model=_texts(data["model"]),
            created=str(data["created"]),
            threads=int(data["threads"]),
            latency=LatencyModel.from_dict(data["latency"]),
            popularity=popularity,
            probes=tuple(Probe.from_dict(probe) for probe in data["probes"]),
            expert_slots=int(data["expert_slots"]),
            predicted_decode=predicted,
            measured_decode=measured,
            precision=precision,
            kernels=None if kernels is None else KernelChoice.from_dict(kernels),
            exact_activations=bool(data.get("exact_activations", False)),
        )


def _texts(data: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in data.items()}


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__
