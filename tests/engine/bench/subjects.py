"""A tiny model of random weights, with the CPU as the second device in the place of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from engine.bench.memory_watch import MemoryWatch
from engine.bench.model_request import Subject
from engine.bench.model_subject import LoadedSubject, load_subject
from engine.bench.synthetic import make_model
from engine.options import LoadOptions
from engine.placement import place_popular, place_uniform
from engine.progress import CancelToken, ignore_progress

CPU = torch.device("cpu")


def tiny(context: int = 64, **changes: object) -> Subject:
    options = LoadOptions(device="cpu", threads=2, context_length=context)
    return replace(Subject(options=options, preset="tiny"), **changes)  # type: ignore[arg-type]


@contextmanager
def mixed(subject: Subject, resident: int, *, even: bool = False) -> Iterator[LoadedSubject]:
    """`subject` with so many experts "on the GPU": what runs where is decided as on a machine with one.

    `even`: equally many in each layer.
    """
    with load_subject(subject, ignore_progress, CancelToken()) as plain:
        info = plain.parts.info
        layers, experts = info.config.num_layers, info.config.num_experts
        placement = (
            place_popular(np.ones((layers, experts)), resident)
            if even
            else place_uniform(layers, experts, resident)
        )
        options = replace(subject.options, threads=plain.plan.threads)
        with make_model(info, options, placement, expert_device=CPU) as parts:
            watch = MemoryWatch(CPU, 0, 0)
            loaded = LoadedSubject(
                subject, plain.hardware, plain.plan, parts, placement, watch, plain.gpu_rate
            )
            loaded.route(zipf=subject.zipf)
            yield loaded
