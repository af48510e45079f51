"""Steps of a beam search over a loaded model, timed one by one."""

from __future__ import annotations

import time

import numpy as np
import torch

from engine.bench.compare_points import BEAM_WARM_UP
from engine.bench.driver import Driver, Work
from engine.events import Phase
from engine.generation.beam import BeamSearch
from engine.kvbatch import SequenceBatch
from engine.params import GenerationParams, SamplingParams
from engine.progress import CancelToken
from engine.session import Logits


def beam_steps(driver: Driver, prompt: int, width: int, steps: int, cancel: CancelToken) -> Work:
    """Read a prompt of random tokens, then search `steps` steps with `width` beams; nothing ends early.

    The beams live in the driver's context, which is large enough for them. Executions are those of the timed
    steps alone. Raises Cancelled between two steps.
    """
    driver.read(prompt)
    batch = driver.session.branch(width)
    longest = BEAM_WARM_UP + steps + 1
    params = GenerationParams(sampling=SamplingParams(temperature=0), beams=width, max_tokens=longest)
    search = BeamSearch(params, [], 0)
    tokens = _advance(search, batch, np.repeat(driver.logits[None], width, axis=0))
    seconds: list[float] = []
    for number in range(BEAM_WARM_UP + steps):
        cancel.raise_if_cancelled()
        if number == BEAM_WARM_UP:
            driver.count_anew()
        begin = time.perf_counter()
        tokens = _advance(search, batch, driver.session.step_batch(tokens, batch))
        seconds.append(time.perf_counter() - begin)
    return driver.work(seconds[BEAM_WARM_UP:], Phase.DECODE)


def _advance(search: BeamSearch, batch: SequenceBatch, logits: Logits) -> list[int]:
    """Choose the beams' next tokens, and let each beam continue the one that it comes from."""
    candidates = search.propose(torch.from_numpy(logits))
    chosen = search.accept(candidates, [False] * len(candidates.tokens))
    batch.reorder([candidates.parents[index] for index in chosen])
    return [tokens[-1] for tokens in search.tokens]
