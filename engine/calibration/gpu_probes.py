"""Probes of the GPU's side: an expert's time there, and copies of weights and activations."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from engine.calibration.probes import shuffled_experts
from engine.calibration.timing import Timing, measure
from engine.experts.link import CudaLink, DirectLink, HostLink
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream, ExpertStream
from engine.models.loader import LoadedModel
from engine.stats import HitCounters


class GpuProbes:
    """Times on the GPU of a loaded model. Nobody else may use it meanwhile.

    A model that is resident as a whole copies nothing; room for two experts is then taken for the probes.
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
        if self._gpu.resident.all():
            nothing = np.zeros_like(self._gpu.resident)
            self._gpu = GpuExperts(
                self._config, self._device, nothing, slots=1, packed_format=parts.bank.shape.format
            )
            stream = CudaStream if self._is_cuda else DirectStream
            self._stream = stream(parts.bank, self._gpu, HitCounters(*nothing.shape))
        order = shuffled_experts(self._config.num_layers, self._config.num_experts)
        self._missing = itertools.cycle([item for item in order if not self._gpu.resident[item]])

    def expert(self, tokens: int) -> Timing:
        """One expert with `tokens` tokens, its weights on the GPU; of several, another one each time."""
        if not self._gpu.present.any():
            self._fetch()
        present = [(int(layer), int(expert)) for layer, expert in np.argwhere(self._gpu.present)]
        places = itertools.cycle([place for item in present if (place := self._gpu.place(*item)) is not None])
        shape = (tokens, self._config.hidden_size)
        x = torch.randn(shape, device=self._device, dtype=self._gpu.number_format)

        def run() -> None:
            self._gpu.run(next(places), x)
            self._synchronise()

        return measure(run)

    def weight_copy(self) -> Timing:
        """One expert's weights from the host into a slot, unpacked and ready for use."""
        return measure(self._fetch)

    def activation_copy(self, tokens: int) -> Timing:
        """`tokens` activations and their routing to the host, and as many results back and added."""
        hidden, top_k = self._config.hidden_size, self._config.top_k
        link: HostLink = DirectLink(hidden)
        if self._is_cuda:
            link = CudaLink(hidden, top_k, self._device)
        x = torch.randn(tokens, hidden, device=self._device)
        ids = torch.zeros(tokens, top_k, dtype=torch.int64, device=self._device)
        weights = torch.zeros(tokens, top_k, device=self._device)

        def run() -> None:
            link.send_activations(x)
            link.routing(ids, weights)
            link.activations(tokens)
            link.add_results(x)
            self._synchronise()

        return measure(run)

    def _fetch(self) -> None:
        item = next(self._missing)
        if self._gpu.present[item]:  # in a slot still: only one or two are missing
            self._gpu.empty_slots()
        self._stream.release(self._stream.fetch(*item))
        self._synchronise()

    def _synchronise(self) -> None:
        """Wait until the GPU has done everything, copies included."""
        if self._is_cuda:
            torch.cuda.synchronize(self._device)
