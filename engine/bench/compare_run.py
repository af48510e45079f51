"""Measures the points of `fiddler bench compare` that its file does not have yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from engine.bench.beam_driver import beam_steps
from engine.bench.compare_points import (
    BEAM_INPUT,
    MIXTRAL_ZIPF,
    Kind,
    Placing,
    Point,
    Sizes,
    expected_seconds,
)
from engine.bench.compare_store import CompareStore, Comparison, Record, Setup
from engine.bench.driver import Driver, Work
from engine.bench.model_rates import measure_rates
from engine.bench.model_request import WARM_UP, Subject
from engine.bench.model_subject import LoadedSubject, load_subject
from engine.bench.rates import Rates
from engine.bench.roofline import decode_seconds, prefill_seconds
from engine.explained import explained
from engine.oom import free_unused
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.units import format_seconds


class CompareRun:
    """One run; `comparison` is None before the model is loaded.

    `points`: what to measure, depending on how the model was loaded. `store` keeps every record as soon as it
    is there. `again` measures also what it has already. `seconds`: after so long no point is begun that would
    not end in time (None: all are measured). `command` is kept with what it measures.

    `notes` are the plan's, for the user.
    """

    def __init__(
        self,
        subject: Subject,
        points: Callable[[LoadedSubject], Sequence[Point]],
        store: CompareStore,
        *,
        again: bool = False,
        seconds: float | None = None,
        command: str = "",
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> None:
        self._subject = subject
        self._points = points
        self._store = store
        self._again = again
        self._end = None if seconds is None else time.monotonic() + seconds
        self._command = command
        self._progress = progress
        self._cancel = cancel or CancelToken()
        self._warm: set[int] = set()  # lengths of prompts
        self.comparison: Comparison | None = None
        self.notes: tuple[str, ...] = ()

    def measure(self) -> Comparison:
        """Measure what is missing. Raises what loading raises, and Cancelled between two points or steps."""
        with explained():
            begun = time.monotonic()
            comparison, evenly, loaded = self._usual_points()
            loading = loaded - begun
            if evenly and self._end is not None and time.monotonic() + loading > self._end:
                comparison.left_out += [f"{point.scenario} with {point.policy}" for point in evenly]
            elif evenly:
                free_unused()  # the model that was measured: the plan of the next counts what is free
                with load_subject(self._subject, self._progress, self._cancel, even=True) as subject:
                    self._measure(subject, comparison, evenly)
        comparison.complete = not comparison.left_out
        return comparison

    def _usual_points(self) -> tuple[Comparison, list[Point], float]:
        """Measure what is missing of the usual placement.

        Returns the comparison, what is missing of the others, and when the model was loaded.
        """
        with load_subject(self._subject, self._progress, self._cancel) as subject:
            loaded = time.monotonic()
            comparison = self.comparison = self._store.open(setup_of(subject))
            comparison.left_out.clear()
            comparison.complete = False
            self.notes = subject.plan.notes
            todo = [point for point in self._fitting(subject) if self._again or not _known(comparison, point)]
            if todo:
                comparison.command = self._command
            self._measure(subject, comparison, [each for each in todo if each.placing is Placing.USUAL])
            self.notes += subject.parts.notes
        return comparison, [each for each in todo if each.placing is not Placing.USUAL], loaded

    def _fitting(self, subject: LoadedSubject) -> list[Point]:
        """The points that the model's context can hold; the others are noted."""
        context = subject.plan.context_length
        points = self._points(subject)
        fitting = [point for point in points if point.tokens <= context]
        if len(fitting) < len(points):
            self.notes += (f"What needs more than the model's context of {context} tokens is left out.",)
        return fitting

    def _measure(self, subject: LoadedSubject, comparison: Comparison, todo: Sequence[Point]) -> None:
        if not todo:
            return
        self._progress(Progress("Measuring bandwidths"))
        rates = measure_rates(subject.parts, self._cancel, subject.gpu_rate)
        sizes = sizes_of(subject)
        driver = Driver(subject, self._cancel)
        self._progress(Progress("Warming up"))
        driver.read(WARM_UP[0])
        driver.decode(WARM_UP[1])
        for done, point in enumerate(todo):
            self._cancel.raise_if_cancelled()
            expected = expected_seconds(point, sizes, rates)
            if self._end is not None and time.monotonic() + expected > self._end:
                words = f"{point.scenario} with {point.policy} (about {format_seconds(expected)})"
                comparison.left_out.append(words)
                continue
            self._progress(Progress("Comparing policies", done, len(todo), "points"))
            record = record_of(subject, point, self._work(subject, driver, point), rates)
            self._store.add(comparison, record)

    def _work(self, subject: LoadedSubject, driver: Driver, point: Point) -> Work:
        driver.use(point.policy)
        route(subject, point.placing)
        self._warm_up(driver, point)
        if point.kind is Kind.BEAMS:
            return beam_steps(driver, BEAM_INPUT, point.size, point.steps, self._cancel)
        read = driver.read(point.size)
        return read if point.kind is Kind.PROMPT else driver.decode(point.steps)

    def _warm_up(self, driver: Driver, point: Point) -> None:
        """Read a prompt of a length that comes for the first time: buffers grow, kernels are made for it."""
        if point.kind is Kind.PROMPT and point.size not in self._warm:
            self._warm.add(point.size)
            driver.read(point.size)


def policies_of(subject: LoadedSubject, policies: Sequence[str]) -> tuple[str, ...]:
    """The policies that differ: all with a GPU; without one they all mean the same, and one is enough."""
    return tuple(policies) if subject.plan.has_gpu else (subject.plan.policy,)


def setup_of(subject: LoadedSubject) -> Setup:
    """What the comparison's points have in common."""
    plan, parts = subject.plan, subject.parts
    return Setup(
        machine=subject.machine(),
        model=parts.info.name,
        precision=plan.precision,
        vram_budget=subject.subject.options.vram_budget,
        routing=subject.subject.routing_text(),
        exact_activations=subject.subject.options.exact_experts,
    )


def sizes_of(subject: LoadedSubject) -> Sizes:
    """The model's sizes, for expectations."""
    config = subject.parts.info.config
    return Sizes(
        config.num_layers,
        config.num_experts,
        config.top_k,
        subject.parts.bank.shape.nbytes,
        config.expert_parameters,
        float(1 - subject.resident.mean()),
    )


def record_of(subject: LoadedSubject, point: Point, work: Work, rates: Rates) -> Record:
    """A point's record with the least time that the bandwidths allow for what really ran."""
    nbytes, steps = subject.parts.bank.shape.nbytes, len(work.seconds)
    missing, resident = work.missing_executions / steps, work.resident_executions / steps
    if point.kind is Kind.PROMPT:
        floor = prefill_seconds(rates, work.missing_experts * nbytes)
    else:
        floor = decode_seconds(rates, missing * nbytes, resident * nbytes, subject.dense_bytes)
    share = float(subject.resident.mean())
    seconds = work.total / steps
    return Record(point.scenario, point.policy, seconds, floor, missing + resident, steps, share, rates)


def route(subject: LoadedSubject, placing: Placing) -> None:
    """Make the experts on the GPU what `placing` says, by routing: experts of random weights are alike.

    Popular and random ones are to be equally many in each layer (`load_subject`).
    """
    if placing is Placing.USUAL:
        subject.route(zipf=subject.subject.zipf)
    else:
        zipf = subject.subject.zipf or MIXTRAL_ZIPF
        subject.route(zipf=zipf, favourites=subject.resident if placing is Placing.POPULAR else None)


def _known(comparison: Comparison, point: Point) -> bool:
    """Whether a record of the point is there, over as many steps."""
    record = comparison.find(point.scenario, point.policy)
    return record is not None and record.steps >= point.steps
