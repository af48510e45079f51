"""The calibration from the first probe to the saved profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.calibration.cpu_experts import CpuExperts
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.kernels import choose_kernels
from engine.calibration.partial import PartialResult
from engine.calibration.popularity import PROFILE_TEXT, read_popularity
from engine.calibration.probes import PROMPT_TOKENS, TOKEN_COUNTS, DecodeProbes
from engine.calibration.timing import Timing
from engine.calibration.together import TOGETHER_COUNTS, TogetherProbes
from engine.checkpoint.inspect import ModelInfo
from engine.errors import CalibrationError
from engine.generation.tokenizer import Tokenizer
from engine.hardware.facts import Hardware
from engine.kernel_choice import KernelChoice, apply_kernels
from engine.latency import Curve, LatencyModel, Together
from engine.models.loader import LoadedModel
from engine.options import LoadOptions
from engine.paths import asset, profiles_dir
from engine.profile import Probe, ProbeKind, Profile
from engine.profile_store import file_name, model_parts, save_profile
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.step_time import decode_step_seconds

ProbeCallback = Callable[[Probe], None]

_KERNELS = ProbeKind.KERNELS


class MeasurableEngine(Protocol):
    """What a calibration asks of `engine.runtime.Engine`."""

    info: ModelInfo
    hardware: Hardware
    options: LoadOptions

    def exclusive(self) -> AbstractContextManager[LoadedModel]:
        """The model's parts, to be used by nobody else meanwhile."""

    def use_profile(self, profile: Profile) -> None:
        """Decide by this profile's latency model from now on. Called while the parts are used alone."""


@dataclass(frozen=True)
class _Step:
    """A probe to take: what it measures and how."""

    kind: ProbeKind
    tokens: int
    take: Callable[[], Timing]


def calibrate(
    engine: MeasurableEngine,
    *,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
    on_probe: ProbeCallback = lambda _: None,
    folder: Path | None = None,
) -> Profile:
    """Measure this machine with the loaded model, save the profile in `folder`, and let the engine use it.

    `on_probe` gets every probe as it is measured, also those that an earlier, cancelled calibration of the
    last hour had finished. Takes a quarter of a minute for the starter model and a minute or two for a large
    one.

    Raises:
        Cancelled: between two probes; what was measured is kept for the next time.
        GenerationError: the engine is busy with an answer.
        CalibrationError: the times make no sense.
        FileError: the profile cannot be saved; the engine uses it all the same.
    """
    threads = engine.options.threads
    machine, model = engine.hardware.fingerprint_parts(threads), model_parts(engine.info)
    name = file_name(machine, model, engine.options.precision, exact=engine.options.exact_experts)
    path = (folder or profiles_dir()) / f"unfinished-{name}"
    with engine.exclusive() as parts:
        session = _Calibration(parts, PartialResult.load(path), progress, cancel or CancelToken(), on_probe)
        before = parts.pool.tuning
        try:
            profile = session.run(machine, model, engine.options)
        except BaseException as error:
            parts.pool.tuning = before  # times of an earlier profile are with its kernels
            if isinstance(error, CalibrationError):
                session.unfinished.remove()  # or the next one would take the same times
            raise
        engine.use_profile(profile)  # here: nobody can begin an answer, or free the model, in between
    save_profile(profile, folder)
    session.unfinished.remove()
    return profile


class _Calibration:
    """One run over a loaded model."""

    def __init__(
        self,
        parts: LoadedModel,
        unfinished: PartialResult,
        progress: ProgressCallback,
        cancel: CancelToken,
        on_probe: ProbeCallback,
    ) -> None:
        self.unfinished = unfinished
        self._parts = parts
        self._progress = progress
        self._cancel = cancel
        self._on_probe = on_probe
        text = asset(PROFILE_TEXT).read_text(encoding="utf-8")
        self._tokens = Tokenizer.load(parts.info.path).encode(text)
        self._decode = DecodeProbes(parts.model, self._tokens)

    def run(self, machine: dict[str, str], model: dict[str, str], options: LoadOptions) -> Profile:
        """Choose the kernels, take every probe with them, fit, predict a decode step, then measure one."""
        steps = list(self._steps())
        total = len(steps) + 3
        kernels = self._kernels(total, exact=options.exact_experts)
        for number, step in enumerate(steps):
            self._take(step, number + 1, total)
        popularity = self._popularity(len(steps) + 1, total)
        latency = fit(self.unfinished.probes)
        resident = np.zeros(popularity.shape, dtype=np.bool_)
        if latency.has_gpu and self._parts.residents is not None:  # a simulated placement does not count
            resident = self._parts.residents.resident
        predicted = decode_step_seconds(latency, resident, popularity, options.policy)
        measured = self._take(_Step(ProbeKind.DECODE, 1, self._decode.whole), total - 1, total)
        self._progress(Progress("Done", total, total, "probes"))
        return Profile(
            model_name=self._parts.info.name,
            hardware=machine,
            model=model,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            threads=self._parts.pool.threads,
            latency=latency,
            popularity=popularity,
            probes=tuple(self.unfinished.probes.values()),
            expert_slots=int(resident.sum()),
            predicted_decode=predicted,
            measured_decode=measured.seconds,
            precision=options.precision,
            kernels=kernels,
            exact_activations=options.exact_experts,
        )

    def _steps(self) -> Iterator[_Step]:
        on_cuda = self._parts.model.device.type == "cuda"
        cpu, gpu = CpuExperts(self._parts), GpuProbes(self._parts) if on_cuda else None
        long = gpu is not None and gpu.has_room(PROMPT_TOKENS)
        counts = (*TOKEN_COUNTS, PROMPT_TOKENS) if long else TOKEN_COUNTS
        for tokens in counts:  # beside a GPU steps are graphs, in which nothing can be timed
            take = cpu.one if on_cuda else self._decode.cpu_expert
            yield _Step(ProbeKind.CPU_EXPERT, tokens, partial(take, tokens))
        if gpu is not None:
            for tokens in counts:
                yield _Step(ProbeKind.GPU_EXPERT, tokens, partial(gpu.expert, tokens))
            yield _Step(ProbeKind.WEIGHT_COPY, 0, gpu.weight_copy)
            yield _Step(ProbeKind.COPY_START, 0, gpu.copy_start)
            yield _Step(ProbeKind.CPU_START, 0, cpu.start)
            together = TogetherProbes(cpu, gpu)
            for tokens in TOGETHER_COUNTS:
                yield _Step(ProbeKind.CPU_ALONE, tokens, partial(together.cpu_alone, tokens))
                yield _Step(ProbeKind.CPU_TOGETHER, tokens, partial(together.cpu_together, tokens))
                yield _Step(ProbeKind.COPY_TOGETHER, tokens, partial(together.copy_together, tokens))
            for tokens in (1, TOKEN_COUNTS[-1]):
                yield _Step(ProbeKind.ACTIVATION_COPY, tokens, partial(gpu.activation_copy, tokens))
        yield _Step(ProbeKind.OTHER_DECODE, 1, self._decode.without_experts)

    def _kernels(self, total: int, *, exact: bool) -> KernelChoice:
        """The kernels, from the unfinished calibration or chosen now; the pool uses them from now on."""
        self._cancel.raise_if_cancelled()

        def show(share: float) -> None:
            self._progress(Progress("Choosing the fastest kernels", share, total, "probes"))

        probe = next((probe for (kind, _), probe in self.unfinished.probes.items() if kind is _KERNELS), None)
        if self.unfinished.kernels is None or probe is None:
            choice, tokens, seconds = choose_kernels(
                self._parts, exact=exact, check=self._cancel.raise_if_cancelled, progress=show
            )
            probe = Probe(_KERNELS, tokens, seconds)
            self.unfinished.add(probe, kernels=choice)
        kernels = self.unfinished.kernels
        assert kernels is not None
        apply_kernels(kernels, self._parts.pool, exact=exact)
        self._on_probe(probe)
        return kernels

    def _take(self, step: _Step, number: int, total: int) -> Probe:
        """The probe, from the unfinished calibration or measured now."""
        self._cancel.raise_if_cancelled()
        known = self.unfinished.probes.get((step.kind, step.tokens))
        self._progress(Progress(Probe(step.kind, step.tokens, 0.0).name, number, total, "probes"))
        if known is None:
            timing = step.take()
            known = Probe(step.kind, step.tokens, timing.seconds, timing.spread)
            self.unfinished.add(known)
        self._on_probe(known)
        return known

    def _popularity(self, number: int, total: int) -> npt.NDArray[np.float64]:
        """The popularity, from the unfinished calibration or read now."""
        key = (ProbeKind.POPULARITY, 1)
        if self.unfinished.popularity is None or key not in self.unfinished.probes:

            def before_chunk(done: int) -> None:
                self._cancel.raise_if_cancelled()
                share = done / len(self._tokens)
                self._progress(Progress("Reading the profile text", number + share, total, "probes"))

            result = read_popularity(self._parts.model, self._tokens, before_chunk)
            self.unfinished.add(Probe(*key, result.seconds), result.table)
        self._on_probe(self.unfinished.probes[key])
        assert self.unfinished.popularity is not None
        return self.unfinished.popularity


def fit(probes: Mapping[tuple[ProbeKind, int], Probe]) -> LatencyModel:
    """The latency model of the probes. Raises `CalibrationError` if their times make no sense."""

    def curve(kind: ProbeKind) -> Curve | None:
        points = [(tokens, probe.seconds) for (of, tokens), probe in probes.items() if of is kind]
        return Curve.fit(points) if points else None

    cpu, other = curve(ProbeKind.CPU_EXPERT), probes.get((ProbeKind.OTHER_DECODE, 1))
    if cpu is None or other is None or other.seconds <= 0:
        raise CalibrationError("The calibration is incomplete.", action="Calibrate again.")
    once = {kind: probe.seconds for (kind, tokens), probe in probes.items() if tokens == 0}
    return LatencyModel(
        cpu=cpu,
        other_decode=other.seconds,
        gpu=curve(ProbeKind.GPU_EXPERT),
        transfer=once.get(ProbeKind.WEIGHT_COPY),
        activation=curve(ProbeKind.ACTIVATION_COPY),
        together=_together(probes),
        cpu_start=once.get(ProbeKind.CPU_START, 0.0),
        copy_start=once.get(ProbeKind.COPY_START, 0.0),
    )


def _together(probes: Mapping[tuple[ProbeKind, int], Probe]) -> Together | None:
    kinds = (ProbeKind.CPU_ALONE, ProbeKind.CPU_TOGETHER, ProbeKind.COPY_TOGETHER)
    counts = sorted(tokens for kind, tokens in probes if kind is ProbeKind.COPY_TOGETHER)
    if not counts:
        return None
    alone, beside, copies = ([probes[kind, tokens].seconds for tokens in counts] for kind in kinds)
    slowdowns = (slow / usual for slow, usual in zip(beside, alone, strict=True))
    return Together(tuple(counts), tuple(slowdowns), tuple(copies))
