"""The latency model of Fiddler (arXiv 2402.07033): what an expert costs on the CPU, on the GPU, and to copy.

The paper takes the CPU's time as linear in the number of tokens and the GPU's as constant. Measured on real
machines the CPU's time is a line with a knee: one token runs at memory speed, a few tokens are nearly free
beside it, and only then does arithmetic dominate. So the model keeps the measured medians and interpolates
between them, and uses the fitted line only beyond the largest measured count; the line's relative error over
the measured points is kept and shown. All times in seconds. Needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import CalibrationError


@dataclass(frozen=True)
class Line:
    """`intercept + slope × tokens`, fitted to measured points; `error` is the mean relative error there."""

    intercept: float
    slope: float
    error: float

    def __call__(self, tokens: float) -> float:
        """Seconds for `tokens` tokens."""
        return self.intercept + self.slope * tokens


@dataclass(frozen=True)
class Curve:
    """Times measured at rising token counts (medians), interpolated between and fitted beyond."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    line: Line

    @staticmethod
    def fit(points: Sequence[tuple[int, float]]) -> Curve:
        """Fit the points (token count, seconds); counts must be distinct and positive, times positive.

        Raises `CalibrationError` if a point makes no sense: a latency model must not be built on it.
        """
        ordered = sorted(points)
        tokens = tuple(count for count, _ in ordered)
        seconds = tuple(float(time) for _, time in ordered)
        valid = tokens and tokens[0] >= 1 and len(set(tokens)) == len(tokens)
        if not valid or not all(np.isfinite(time) and time > 0 for time in seconds):
            raise CalibrationError(
                "The measured times cannot be used.",
                why=f"They are {ordered!r}.",
                action="Run the calibration again while the computer is otherwise idle.",
            )
        return Curve(tokens, seconds, fit_line(tokens, seconds))

    def __call__(self, tokens: float) -> float:
        """Seconds for `tokens` tokens; 0 for none."""
        if tokens <= 0:
            return 0.0
        if tokens > self.tokens[-1]:  # continue the measured end with the line's slope
            return self.seconds[-1] + self.line.slope * (tokens - self.tokens[-1])
        return float(np.interp(tokens, self.tokens, self.seconds))


def fit_line(tokens: Sequence[int], seconds: Sequence[float]) -> Line:
    """Least squares of the *relative* residuals (weights 1/seconds), with a slope of at least zero.

    Relative, because one token matters as much as sixty-four: decode lives at the small end.
    """
    x = np.asarray(tokens, dtype=np.float64)
    y = np.asarray(seconds, dtype=np.float64)
    if len(x) == 1:
        return Line(float(y[0]), 0.0, 0.0)
    design = np.stack([np.ones_like(x), x], axis=1) / y[:, None]
    (intercept, slope), *_ = np.linalg.lstsq(design, np.ones_like(y), rcond=None)
    if slope < 0:  # more tokens are never cheaper: noise, or a constant
        intercept, slope = float((1 / y).sum() / (1 / y**2).sum()), 0.0
    predicted = intercept + slope * x
    return Line(float(intercept), float(slope), float(np.mean(np.abs(predicted - y) / y)))


@dataclass(frozen=True)
class LatencyModel:
    """Measured costs of one expert on this machine, and of what surrounds the experts in a decode step.

    The CPU's times were taken inside decode steps, the preparation of an expert's job included.
    `cpu`, `gpu`, `activation` are curves over the tokens that one expert is given; `gpu`, `activation` and
    `transfer` (copying one expert's weights to the GPU) are None without a GPU. `other_decode` is a decode
    step without its experts: attention, routers, norms, logits, and with a GPU each layer's way of the
    routing and the activations to the host and back.
    """

    cpu: Curve
    other_decode: float
    gpu: Curve | None = None
    transfer: float | None = None
    activation: Curve | None = None

    @property
    def has_gpu(self) -> bool:
        """Whether the GPU's costs were measured."""
        return self.gpu is not None and self.transfer is not None

    def cpu_lat(self, tokens: float) -> float:
        """Seconds for one expert with `tokens` tokens on the CPU, activations already there."""
        return self.cpu(tokens)

    def gpu_lat(self, tokens: float = 1) -> float:
        """Seconds for one expert on the GPU, weights resident; infinite without a GPU."""
        return float("inf") if self.gpu is None else self.gpu(tokens)

    def transfer_lat(self) -> float:
        """Seconds to copy one expert's weights to the GPU; infinite without a GPU."""
        return float("inf") if self.transfer is None else self.transfer

    def streams(self, tokens: float) -> bool:
        """Algorithm 1's choice for an expert that is not on the GPU: copy its weights there?"""
        return self.cpu_lat(tokens) > self.gpu_lat(tokens) + self.transfer_lat()

    @property
    def fit_error(self) -> float:
        """Mean relative error of the paper's line over the measured CPU points."""
        return self.cpu.line.error

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> LatencyModel:
        """Read what `to_dict` wrote; raises KeyError, TypeError or ValueError on anything else."""
        return LatencyModel(
            cpu=_curve(data["cpu"]),
            other_decode=_positive(data["other_decode"]),
            gpu=None if data["gpu"] is None else _curve(data["gpu"]),
            transfer=None if data["transfer"] is None else _positive(data["transfer"]),
            activation=None if data["activation"] is None else _curve(data["activation"]),
        )


def decode_step_seconds(
    latency: LatencyModel,
    resident: npt.NDArray[np.bool_],
    popularity: npt.NDArray[np.float64],
    policy: str = "paper",
) -> float:
    """Expected time of a decode step: each expert's chance of being chosen times what it costs at its place.

    `resident` is bool [layers, experts]; `popularity` [layers, experts] is the chance that a token chooses
    the expert (rows sum to top-k). Experts run one after the other, as in the paper.
    """
    streamed = latency.has_gpu and (policy == "stream" or (policy == "paper" and latency.streams(1)))
    missing = latency.transfer_lat() + latency.gpu_lat(1) if streamed else latency.cpu_lat(1)
    at_gpu = float(popularity[resident].sum())
    elsewhere = float(popularity[~resident].sum())
    seconds = latency.other_decode + elsewhere * missing
    return seconds + at_gpu * latency.gpu_lat(1) if at_gpu else seconds


def _curve(data: dict[str, Any]) -> Curve:
    return Curve.fit([(int(t), float(s)) for t, s in zip(data["tokens"], data["seconds"], strict=True)])


def _positive(value: Any) -> float:
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"not a positive time: {value!r}")
    return number
