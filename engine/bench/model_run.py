"""Measures what `fiddler bench model` reports: bandwidths, prompts, single tokens, memory."""

from __future__ import annotations

import statistics
from dataclasses import asdict

from engine.accounting import TimeSplit
from engine.bench.driver import Driver, Work
from engine.bench.model_rates import measure_rates
from engine.bench.model_report import DecodeFigure, ModelReport, PromptFigure
from engine.bench.model_request import WARM_UP, ModelRequest
from engine.bench.model_subject import LoadedSubject, load_subject
from engine.bench.rates import Rates
from engine.bench.roofline import decode_seconds, prefill_seconds
from engine.bench.soak import soak
from engine.costs import ExpertCosts
from engine.drift import Drift
from engine.explained import explained
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress


class ModelRun:
    """One run of a request; `report` holds what it has measured so far, None before the model is loaded."""

    def __init__(
        self,
        request: ModelRequest,
        *,
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> None:
        self._request = request
        self._progress = progress
        self._cancel = cancel or CancelToken()
        self.report: ModelReport | None = None

    def measure(self) -> ModelReport:
        """The whole report.

        Raises what loading raises, BenchError for more than the model's context holds, and Cancelled between
        two steps.
        """
        self._request.check_context(self._request.subject.info())
        with explained(), load_subject(self._request.subject, self._progress, self._cancel) as subject:
            report = self.report = ModelReport(describe(subject), subject.machine(), notes=subject.plan.notes)
            self._progress(Progress("Measuring bandwidths"))
            report.rates = measure_rates(subject.parts, self._cancel, subject.gpu_rate)
            self._measure(subject, report, report.rates)
            report.memory = memory(subject)
            report.notes += subject.parts.notes
            report.complete = True
        return report

    def _measure(self, subject: LoadedSubject, report: ModelReport, rates: Rates) -> None:
        request = self._request
        driver = Driver(subject, self._cancel)
        driver.use(request.subject.options.policy)
        self._progress(Progress("Warming up"))
        driver.read(WARM_UP[0])
        driver.decode(WARM_UP[1])
        for done, tokens in enumerate(request.prompts):
            self._progress(Progress("Reading prompts", done, len(request.prompts), "prompts"))
            works = [driver.read(tokens) for _ in range(request.repeats)]
            report.prompts.append(prompt_figure(subject, rates, tokens, works))
        self._progress(Progress("Decoding"))
        account = subject.parts.executor.account
        before = account.snapshot()
        report.decode = decode_figure(subject, rates, driver.decode(request.decode))
        report.accounting = accounting(account.snapshot().since(before), subject.parts.executor.costs)
        if request.soak:
            figures = soak(subject, driver, request.soak, self._progress, self._cancel)
            report.soak = figures.to_dict()


def describe(subject: LoadedSubject) -> dict[str, object]:
    """The model and how it is loaded, for reports."""
    plan, info = subject.plan, subject.parts.info
    return {
        "name": info.name,
        "layers": plan.layers,
        "experts": plan.experts,
        "expert_bytes": subject.parts.bank.shape.nbytes,
        "precision": plan.precision,
        "kernels": None if subject.kernels is None else subject.kernels.to_dict(),
        "kernels_text": "" if subject.kernels is None else subject.kernels.text(),
        "policy": plan.policy,
        "resident": subject.placement.count,
        "vram_budget": plan.vram_budget,
        "context": plan.context_length,
        "routing": subject.subject.routing_text(),
    }


def prompt_figure(subject: LoadedSubject, rates: Rates, tokens: int, works: list[Work]) -> PromptFigure:
    """The figure of a prompt that was read once or several times."""
    seconds = statistics.median(work.total for work in works)
    missing = statistics.median(work.missing_experts for work in works) * subject.parts.bank.shape.nbytes
    return PromptFigure(tokens, seconds, len(works), prefill_seconds(rates, missing))


def decode_figure(subject: LoadedSubject, rates: Rates, work: Work) -> DecodeFigure:
    """The figure of single tokens."""
    count, nbytes = len(work.seconds), subject.parts.bank.shape.nbytes
    floor = decode_seconds(
        rates,
        work.missing_executions * nbytes / count,
        work.resident_executions * nbytes / count,
        subject.dense_bytes,
    )
    resident = work.resident_executions / (work.resident_executions + work.missing_executions)
    return DecodeFigure(count, work.total / count, work.median, max(work.seconds), floor, resident)


def accounting(split: TimeSplit, costs: ExpertCosts | None) -> dict[str, object]:
    """Microseconds of a token by what they went to, and how true the predictions of layers were."""
    found: dict[str, object] = {"whole_us": split.whole_microseconds, "parts_us": split.microseconds()}
    if isinstance(costs, Drift):
        found |= {"prediction_error": costs.error, "refits": costs.refits}
    return found


def memory(subject: LoadedSubject) -> dict[str, object]:
    """What the process took at most, against the budget."""
    figures = subject.watch.figures(subject.held_bytes)
    return asdict(figures) | {"gpu_peak": figures.gpu_peak, "within_budget": figures.within_budget}
