"""An answer's own parameters and seed: what it can be written with once more. Pure."""

from __future__ import annotations

import dataclasses

from app.chat.plan import AnswerPlan
from app.storage.figures import params_from_json, stats_from_json
from app.storage.rows import MessageRow
from engine.params import GenerationParams


def params_again(row: MessageRow) -> GenerationParams | None:
    """The parameters of a saved answer with the seed that was really drawn; None if they are not known."""
    params = None if row.params is None else params_from_json(row.params)
    if params is None:
        return None
    seed = seed_of(row)
    if seed is None and params.beams == 1 and not params.sampling.greedy:
        return None  # it never came to its end, and the seed is not known
    sampling = dataclasses.replace(params.sampling, seed=seed)
    return dataclasses.replace(params, sampling=sampling, answers=1)


def seed_of(row: MessageRow) -> int | None:
    """The seed that an answer was drawn with; None for one that drew nothing, or where it is not known."""
    drawn = None if row.stats is None else stats_from_json(row.stats, hits=False).seed
    if drawn is not None and 0 <= drawn < 2**63:
        return drawn
    params = None if row.params is None else params_from_json(row.params)
    return None if params is None else params.sampling.seed


def plan_again(row: MessageRow, system_prompt: str) -> AnswerPlan | None:
    """How to write the same answer again."""
    params = params_again(row)
    return None if params is None else AnswerPlan(system_prompt, (params,))
