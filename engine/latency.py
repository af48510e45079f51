"""The latency model of Fiddler (arXiv 2402.07033): what an expert costs on the CPU, on the GPU, and to copy.

The paper takes the CPU's time as linear in the number of tokens and the GPU's as constant. Measured on real
machines the CPU's time is a line with a knee: one token runs at memory speed, a few tokens are nearly free
beside it, and only then does arithmetic dominate. So the model keeps the measured medians, interpolates
between them, and goes on beyond the largest count as the last two rise; a line is fitted for comparison with
the paper, and its relative error over the measured points is kept and shown. All times in seconds. Needs
numpy alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from engine.costs import AtOnce
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
    """Times measured at rising token counts (medians), interpolated between and continued beyond."""

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
        place = bisect_left(self.tokens, tokens)
        if place == len(
            self.tokens
        ):  # continue the measured end: its own slope, and not less than the line's
            return self.seconds[-1] + self._end_slope * (tokens - self.tokens[-1])
        if place == 0:
            return self.seconds[0]
        low, high = self.tokens[place - 1], self.tokens[place]
        first, second = self.seconds[place - 1], self.seconds[place]
        return second - (second - first) * (high - tokens) / (high - low)

    @cached_property
    def _end_slope(self) -> float:
        if len(self.tokens) < 2:
            return self.line.slope
        rise = self.seconds[-1] - self.seconds[-2]
        return max(self.line.slope, rise / (self.tokens[-1] - self.tokens[-2]))


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
class Together:
    """The CPU and the copies measured at the same time, at rising token counts of the CPU's experts.

    `slowdowns`: how many times as long the CPU takes as alone. `copies`: seconds to copy an expert meanwhile.
    Between the counts interpolated, outside of them constant. Many tokens per expert ask less of the memory
    than one: then neither side disturbs the other much.
    """

    tokens: tuple[int, ...]
    slowdowns: tuple[float, ...]
    copies: tuple[float, ...]

    def __call__(self, tokens: float) -> AtOnce:
        """The rates with experts of `tokens` tokens on the CPU."""
        return AtOnce(
            float(np.interp(tokens, self.tokens, self.slowdowns)),
            float(np.interp(tokens, self.tokens, self.copies)),
        )


@dataclass(frozen=True)
class LatencyModel:
    """Measured costs of one expert on this machine, and of what surrounds the experts in a decode step.

    The CPU's times were taken inside decode steps, the preparation of an expert's job included.
    `cpu`, `gpu`, `activation` are curves over the tokens that one expert is given; `gpu`, `activation` and
    `transfer` (copying one expert's weights to the GPU) are None without a GPU, and so is `together`.
    `cpu_start` and `copy_start` are the parts of an expert's time and of its copy that do not depend on how
    many of its panels are meant. `other_decode` is a decode step without its experts: attention, routers,
    norms, logits, and with a GPU each layer's way of the routing and the activations to the host and back.
    """

    cpu: Curve
    other_decode: float
    gpu: Curve | None = None
    transfer: float | None = None
    activation: Curve | None = None
    together: Together | None = None
    cpu_start: float = 0.0
    copy_start: float = 0.0
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

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

    def start_cpu(self) -> float:
        """The part of an expert's time on the CPU that is not per panel."""
        return self.cpu_start

    def start_copy(self) -> float:
        """The part of a copy that is not per panel."""
        return self.copy_start

    def at_once(self, tokens: float) -> AtOnce:
        """The rates while the CPU computes experts of `tokens` tokens and others are copied."""
        return AtOnce(1.0, self.transfer_lat()) if self.together is None else self.together(tokens)

    @property
    def fit_error(self) -> float:
        """Mean relative error of the paper's line over the measured CPU points."""
        return self.cpu.line.error

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(replace(self))  # a copy without plans
        del data["memo"]
        return data

    @staticmethod
    def from_dict(data: dict[str, Any]) -> LatencyModel:
        """Read what `to_dict` wrote; raises KeyError, TypeError or ValueError on anything else."""
        return LatencyModel(
            cpu=_curve(data["cpu"]),
            other_decode=_positive(data["other_decode"]),
            gpu=None if data["gpu"] is None else _curve(data["gpu"]),
            transfer=None if data["transfer"] is None else _positive(data["transfer"]),
            activation=None if data["activation"] is None else _curve(data["activation"]),
            together=None if data["together"] is None else _together(data["together"]),
            cpu_start=_start(data["cpu_start"]),
            copy_start=_start(data["copy_start"]),
        )


def _curve(data: dict[str, Any]) -> Curve:
    return Curve.fit([(int(t), float(s)) for t, s in zip(data["tokens"], data["seconds"], strict=True)])


def _positive(value: Any) -> float:
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"not a positive time: {value!r}")
    return number


def _start(value: Any) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"not a time: {value!r}")
    return number


def _together(data: dict[str, Any]) -> Together:
    tokens = tuple(int(count) for count in data["tokens"])
    slowdowns, copies = (tuple(_positive(each) for each in data[key]) for key in ("slowdowns", "copies"))
    if not tokens or sorted(set(tokens)) != list(tokens) or {len(slowdowns), len(copies)} != {len(tokens)}:
        raise ValueError("the rates measured together are not a table")
    return Together(tokens, slowdowns, copies)
