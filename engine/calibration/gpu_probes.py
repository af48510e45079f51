"""Probes of the GPU's side: an expert's time there, and copies of weights and activations."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import torch

from engine.calibration.cpu_experts import intercept
from engine.calibration.probes import shuffled_experts
from engine.calibration.timing import Timing, measure
from engine.experts.link import CudaLink, DirectLink, HostLink
from engine.experts.panels import Panels
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream, ExpertStream
from engine.models.loader import LoadedModel
from engine.stats import HitCounters
from kernels.gpu import support

_PART = 8  # the part of an expert, one in so many, that the cost of starting is found with
_FEW = 16  # tokens up to which decode's kernels are used
_AHEAD = 3  # copies waiting behind the one under way: the stream never runs dry between two looks at it


class GpuProbes:
    """Times on the GPU of a loaded model. Nobody else may use it meanwhile.

    A model that is resident as a whole copies nothing; room for one more expert is then taken for the probes.
    The GPU may be the CPU as a second device: good for trying the probes, not for measuring anything.
    """

    def __init__(self, parts: LoadedModel) -> None:
        executor = parts.model.executor
        if executor.gpu is None or executor.stream is None:
            raise ValueError("the model was loaded without a GPU")
        self._config = parts.info.config
        self._gpu: GpuExperts = executor.gpu
        self._stream: ExpertStream = executor.stream
        self._device = self._gpu.device
        self._is_cuda = self._device.type == "cuda"
        if parts.bank.registration is not None:  # copies are slow from what is not pinned yet
            parts.bank.registration.wait()
        if self._gpu.resident.all():
            nothing = np.zeros_like(self._gpu.resident)
            self._gpu = GpuExperts(
                self._config,
                self._device,
                nothing,
                slots=1,
                packed_format=parts.bank.shape.format,
                number_format=self._gpu.number_format,
            )
            stream = CudaStream if self._is_cuda else DirectStream
            self._stream = stream(parts.bank, self._gpu, HitCounters(*nothing.shape))
        order = shuffled_experts(self._config.num_layers, self._config.num_experts)
        self._missing = itertools.cycle([item for item in order if not self._gpu.resident[item]])

    def has_room(self, tokens: int) -> bool:
        """Whether an expert with so many tokens can be run in what is left of the device's memory."""
        try:
            shape = tokens, self._config.hidden_size
            self._gpu.run(0, torch.zeros(shape, device=self._device, dtype=self._gpu.number_format))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return False
        return True

    def expert(self, tokens: int) -> Timing:
        """One expert with `tokens` tokens, its weights on the GPU; of several, another one each time."""
        if not self._gpu.present.any():
            self._fetch()
        present = [(int(layer), int(expert)) for layer, expert in np.argwhere(self._gpu.present)]
        places = itertools.cycle([place for item in present if (place := self._gpu.place(*item)) is not None])
        shape = (tokens, self._config.hidden_size)
        x = torch.randn(shape, device=self._device, dtype=self._gpu.number_format)
        compute = self._fused(x) if tokens <= _FEW and support.usable(self._device) else None

        def run() -> None:
            if compute is not None:
                compute(next(places))
            else:
                self._gpu.run(next(places), x)
            self._synchronise()

        return measure(run)

    def _fused(self, x: torch.Tensor) -> Callable[[int], None]:
        """The kernels of decode steps: a place's expert with all rows of x."""
        from kernels.gpu.experts import ExpertScratch, run_residents  # needs triton

        gpu, tokens = self._gpu, len(x)
        scratch = ExpertScratch.make(gpu.shape, tokens, self._device)
        ids = torch.zeros(tokens, 1, dtype=torch.int32, device=self._device)
        weights = torch.ones(tokens, 1, device=self._device)
        only = torch.zeros(1, dtype=torch.int32, device=self._device)  # the first place of what is given

        def compute(place: int) -> None:
            run_residents(gpu.data[place:], gpu.shape, x, ids, weights, only, scratch)

        return compute

    def weight_copy(self) -> Timing:
        """One expert's weights from the host into a slot, there to be used."""
        return measure(self._fetch)

    def copy_start(self) -> Timing:
        """What a copy takes that does not depend on how much of an expert is meant: from two sizes of it."""
        panels = self._gpu.shape.panels
        last = (panels - max(1, panels // _PART), panels)
        part = measure(lambda: self._fetch(last if last[0] else None))
        return intercept(part, measure(self._fetch), (panels - last[0]) / panels)

    def copies(self, goes_on: Callable[[], bool]) -> tuple[int, float]:
        """Copy whole experts without a pause for as long as asked: how many, and their seconds in sum."""
        self._synchronise()
        self._stream.take_copy_seconds()
        under_way: deque[torch.cuda.Event] = deque()
        count = 0
        while count == 0 or goes_on():
            place = self._start()
            count += 1
            if self._is_cuda:
                self._stream.wait(place)
                under_way.append(torch.cuda.current_stream(self._device).record_event())
            while len(under_way) > _AHEAD:
                _wait_quietly(under_way.popleft())
        while under_way:
            _wait_quietly(under_way.popleft())
        return count, self._stream.take_copy_seconds()

    def activation_copy(self, tokens: int) -> Timing:
        """`tokens` activations and their routing to the host, and as many results back and added."""
        hidden, top_k = self._config.hidden_size, self._config.top_k
        link: HostLink = DirectLink(hidden)
        if self._is_cuda:
            link = CudaLink(hidden, top_k, self._device)
        x = torch.randn(tokens, hidden, device=self._device)
        ids = torch.zeros(tokens, top_k, dtype=torch.int64, device=self._device)
        weights = torch.zeros(tokens, top_k, device=self._device)
        rows = torch.arange(tokens, device=self._device)

        def run() -> None:
            link.routing(ids, weights)
            link.send(x)
            link.add_results(x, rows, 0)
            self._synchronise()

        return measure(run)

    def _fetch(self, panels: Panels | None = None) -> None:
        self._start(panels)
        self._synchronise()

    def _start(self, panels: Panels | None = None) -> int:
        item = next(self._missing)
        if self._gpu.present[item]:  # in a slot still: only a few are missing
            self._gpu.empty_slots()
        place = self._stream.fetch(*item, panels)
        self._stream.release(place)
        return place

    def _synchronise(self) -> None:
        """Wait until the GPU has done everything, copies included."""
        if self._is_cuda:
            torch.cuda.synchronize(self._device)


def _wait_quietly(event: torch.cuda.Event) -> None:
    """Wait for an event without taking a core from the threads that are measured meanwhile."""
    while not event.query():  # type: ignore[no-untyped-call]
        time.sleep(100e-6)
