"""The engine as others use it: load a model, generate, ask how it stands, close. One generation at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from engine import vram
from engine.answering import Answerer, params_for_each
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.drift import Drift, prediction_of
from engine.errors import EngineError, GenerationError
from engine.events import Event
from engine.explained import explained
from engine.generation.defaults import default_params, eos_ids
from engine.generation.tokenizer import Tokenizer
from engine.hardware import Hardware, detect
from engine.kernel_choice import apply_kernels
from engine.models.loader import LoadedModel, load_model
from engine.oom import with_smaller_budgets
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from engine.placement import Placement, place_calibrated, place_uniform
from engine.plan import Plan, make_plan
from engine.profile import Profile
from engine.profile_store import find_profile_for
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.session import Session
from engine.snapshot import status_of
from engine.status import EngineStatus
from engine.units import format_bytes

# NVML numbers GPUs by their place on the bus. CUDA would put the fastest first, and the plan would be for
# another card than the one that computes. CUDA reads this at its first use, after torch was imported.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

_T = TypeVar("_T")


class Engine:
    """A loaded model. Made by `Engine.load`.

    `info`, `hardware`, `options`, `plan`, `profile` and `placement` say what was loaded, where and why;
    `notes` are sentences for the user. `parts` are the model's parts, for those who measure it.
    """

    def __init__(
        self,
        parts: LoadedModel,
        tokenizer: Tokenizer,
        hardware: Hardware,
        options: LoadOptions,
        plan: Plan,
        profile: Profile | None,
        placement: Placement,
        notes: tuple[str, ...],
    ) -> None:
        self.info: ModelInfo = parts.info
        self.hardware = hardware
        self.options = options
        self.plan = plan
        self.profile = profile
        self.placement = placement
        self.notes = notes
        self.stale_calibration = ""  # why a saved profile could not be used; empty where there is none
        self.default_params = default_params(self.info.path, is_starter=self.info.is_starter)
        self._tokenizer = tokenizer
        self._answerer: Answerer | None = Answerer(
            tokenizer,
            tokenizer.eos_ids | eos_ids(self.info.path),
            Session(parts.model, plan.context_length, plan.prefill_chunk),
            parts.counters.snapshot,
            parts.executor.account,
            lambda: self._closing,
            lambda: prediction_of(parts.executor.costs),
        )
        self._parts: LoadedModel | None = parts
        self._busy = threading.Lock()
        self._closing = False

    @classmethod
    def load(
        cls,
        path: str | Path,
        options: LoadOptions | None = None,
        profile: Profile | None = None,
        progress: ProgressCallback = ignore_progress,
        cancel: CancelToken | None = None,
    ) -> Engine:
        """Load the model in a folder.

        Without a `profile`, the saved calibration of this machine and model is looked up. Everything that can
        be refused (files, tokenizer, memory) is checked before the weights are read. Where the GPU's memory
        does not suffice after all, loading begins again within a smaller budget, and a note says so.

        Raises:
            CheckpointError: the folder holds no usable model.
            HardwareError: a GPU or an instruction set was asked for that is not there.
            ShortageError: RAM or VRAM does not suffice, itemised; not with `options.force`.
            MemoryFullError: it ran out all the same.
            Cancelled: everything loaded so far is freed.
        """
        options = options or LoadOptions()
        progress(Progress("Checking the model and the computer"))
        info = inspect_model(path)
        tokenizer = Tokenizer.of_model(info)
        hardware = detect(info.path)
        if options.device == "cpu":
            hardware = hardware.without_gpu()
        elif hardware.has_gpu:
            hardware = vram.start_cuda(hardware)
        notes = list(tokenizer.notes)
        stale = ""
        if profile is None:
            found = find_profile_for(options, hardware, info)
            profile, stale = found.profile, found.stale
            if stale:
                notes.append(stale)
        planned = make_plan(hardware, info, options, profile)

        def load(budget: int) -> Engine:
            plan = planned
            if budget != planned.vram_budget:
                plan = make_plan(hardware, info, replace(options, vram_budget=budget), profile)
            plan.requirements.check(force=options.force)
            if profile is None:
                placement = place_uniform(plan.layers, plan.experts, plan.expert_slots)
            else:
                cpu_seconds = profile.latency.cpu_lat(1)
                placement = place_calibrated(profile.popularity, plan.expert_slots, cpu_seconds)
            chosen = replace(
                options,
                device=plan.device,
                threads=plan.threads,
                vram_budget=plan.vram_budget if plan.has_gpu else None,
            )
            parts = load_model(
                info.path,
                chosen,
                placement if plan.has_gpu else None,
                progress,
                cancel,
                costs=None if profile is None else profile.latency,
                kernels=None if profile is None else profile.kernels,
                keep_residents=plan.keep_residents,
            )
            try:
                said = (*plan.notes, *notes)
                engine = cls(parts, tokenizer, hardware, options, plan, profile, placement, said)
                if plan.has_gpu and engine._answerer is not None:
                    progress(Progress("Preparing the graphics card"))
                    engine._answerer.session.prepare()
                return engine
            except BaseException:
                parts.close()
                raise

        with explained():
            engine, budget = with_smaller_budgets(load, planned.vram_budget)
        if budget != planned.vram_budget and engine.plan.has_gpu:
            engine.notes += (
                f"Graphics memory ran out while the model was loaded: {format_bytes(budget)} of it may be "
                f"used now instead of {format_bytes(planned.vram_budget)}.",
            )
        engine.stale_calibration = stale
        return engine

    @property
    def parts(self) -> LoadedModel:
        """The model, its experts, executor, counters and CPU pool. Raises EngineError after `close`."""
        if self._parts is None:
            raise EngineError("The model is closed.", action="Load it again.")
        return self._parts

    def generate(
        self, messages: Sequence[Message], params: GenerationParams, cancel: CancelToken | None = None
    ) -> Iterator[Event]:
        """Answer a conversation; what its beginning has in common with the last one is not read again.

        With `params.beams` above 1 this is a beam search: see GenerationParams and Finished.answers.

        Nothing happens before the first event is asked for, and the last one is Finished. Closing the
        iterator early ends the generation.

        Raises:
            GenerationError: another generation runs, the conversation is not accepted or does not fit.
        """
        started = time.perf_counter()
        return self._alone(lambda answerer: answerer.answer(messages, params, cancel, started))

    def continue_raw(
        self, prompt: str, params: GenerationParams, cancel: CancelToken | None = None
    ) -> Iterator[Event]:
        """Continue a text as it is, without a chat template; otherwise like `generate`."""
        started = time.perf_counter()
        return self._alone(lambda answerer: answerer.answer(prompt, params, cancel, started))

    def generate_batch(
        self,
        conversations: Sequence[Sequence[Message]],
        params: GenerationParams | Sequence[GenerationParams],
        cancel: CancelToken | None = None,
    ) -> Iterator[tuple[int, Event]]:
        """Answer independent conversations together, with the same `params` or with one's own for each.

        Yields (index of the conversation, event); the last of each is Finished. Answers are those that
        `generate` gives, up to the rounding of sums, and take less time together, because an expert is read
        once for all. What the last conversation has read is forgotten.

        Raises:
            GenerationError: as for `generate`; or beam search is asked for, which is for one at a time.
        """
        started = time.perf_counter()
        each = params_for_each(params, len(conversations))
        return self._alone(lambda answerer: answerer.answer_together(conversations, each, cancel, started))

    def count_tokens(self, text: str) -> int:
        """How many tokens a text is by itself, without the chat template's."""
        return self._tokenizer.count(text)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """How many tokens a conversation is as the model reads it, the chat template's included.

        This and `count_tokens` touch nothing but the tokenizer: any thread may call them at any time, also
        while an answer is generated and after `close`. Raises GenerationError as `generate` does for a
        conversation that the template does not accept.
        """
        return len(self._tokenizer.encode_chat(messages))

    def use_profile(self, profile: Profile) -> None:
        """Use a new calibration; not while an answer runs. Where experts lie changes when loading again."""
        self.profile = profile
        self.parts.executor.costs = Drift(profile.latency)
        apply_kernels(profile.kernels, self.parts.pool, exact=self.options.exact_experts)

    def status(self) -> EngineStatus:
        """How things stand now. Raises EngineError after `close`."""
        answerer = self._answerer  # another thread may close the engine meanwhile
        return status_of(self, 0 if answerer is None else answerer.session.used)

    @contextmanager
    def exclusive(self) -> Iterator[LoadedModel]:
        """Use the model's parts alone, as a calibration does. Raises GenerationError if they are in use."""
        if not self._busy.acquire(blocking=False):
            raise GenerationError(
                "The model is busy.",
                why="It answers, or is being measured, one thing at a time.",
                action="Wait for the answer that runs, or stop it.",
            )
        try:
            with explained():
                yield self.parts
        finally:
            self._busy.release()
            self._free_if_closing()

    def close(self) -> None:
        """Free the memory and end the threads; closing twice is harmless.

        A generation that runs ends at its next token with FinishReason.CANCELLED, and the memory is freed
        then.
        """
        self._closing = True
        self._free_if_closing()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _alone(self, work: Callable[[Answerer], Iterator[_T]]) -> Iterator[_T]:
        with self.exclusive():
            assert self._answerer is not None
            yield from work(self._answerer)

    def _free_if_closing(self) -> None:
        """Free everything if closing was asked for and nobody uses the model; its user does it otherwise."""
        if not self._closing or not self._busy.acquire(blocking=False):
            return
        try:
            parts, self._parts, self._answerer = self._parts, None, None
            if parts is not None:
                on_gpu = parts.model.device.type == "cuda"
                parts.close()
                del parts
                if on_gpu:
                    vram.empty_caches()
        finally:
            self._busy.release()
