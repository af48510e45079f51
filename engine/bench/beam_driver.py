"""Steps of a beam search over a loaded model, timed one by one."""

from __future__ import annotations

import time

import numpy as np
import torch

from engine.bench.driver import Work, work_of
from engine.bench.model_subject import LoadedSubject
from engine.events import Phase
from engine.generation.beam import BeamSearch
from engine.kvbatch import SequenceBatch
from engine.params import GenerationParams, SamplingParams
from engine.progress import CancelToken


def beam_steps(subject: LoadedSubject, prompt: int, width: int, steps: int, cancel: CancelToken) -> Work:
    """Read a prompt of random tokens, then search `steps` steps with `width` beams; nothing ends early.

    Executions are those of the steps alone. Raises Cancelled between two steps.
    """
    parts = subject.parts
    model = parts.model
    if model.routing is not None:
        model.routing.restart()
    ids = np.random.default_rng(0).integers(0, parts.info.config.vocab_size, prompt)
    cache = model.new_cache(prompt + width * (steps + 1))
    logits = model.forward(torch.from_numpy(ids), cache, phase=Phase.PREFILL)
    assert logits is not None
    batch = SequenceBatch.after(cache, width)
    batch.reorder([0] * width)
    params = GenerationParams(sampling=SamplingParams(temperature=0), beams=width, max_tokens=steps + 1)
    search = BeamSearch(params, ids.tolist(), 0)
    tokens = _advance(search, batch, logits.expand(width, -1))
    parts.counters.reset()
    seconds = []
    for _ in range(steps):
        cancel.raise_if_cancelled()
        begin = time.perf_counter()
        tokens = _advance(search, batch, model.forward_batch(tokens, batch))
        seconds.append(time.perf_counter() - begin)
    return work_of(parts, subject.resident, tuple(seconds), Phase.DECODE)


def _advance(search: BeamSearch, batch: SequenceBatch, logits: torch.Tensor) -> torch.Tensor:
    """Choose the beams' next tokens, int64 [beams], and let each beam continue the one that it comes from."""
    candidates = search.propose(logits)
    chosen = search.accept(candidates, [False] * len(candidates.tokens))
    batch.reorder([candidates.parents[index] for index in chosen])
    return torch.tensor([candidates.tokens[index] for index in chosen])
