"""How a question is to be answered: what a chat's values come to for the loaded model. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from app.presets.parameters import answers_together, generation_params
from app.presets.preset import ChatSetup
from engine.params import GenerationParams


@dataclass(frozen=True)
class AnswerPlan:
    """How a question is answered: the system prompt, and the parameters of each answer to it."""

    system_prompt: str
    params: tuple[GenerationParams, ...]

    @property
    def shown(self) -> GenerationParams:
        """The parameters of the answer that the chat shows."""
        return self.params[0]

    @property
    def others(self) -> tuple[GenerationParams, ...]:
        """Those of its other versions."""
        return self.params[1:]

    @property
    def alone(self) -> AnswerPlan:
        """The same for one answer, where several make no sense."""
        return AnswerPlan(self.system_prompt, (dataclasses.replace(self.shown, answers=1),))


def plan_of(setup: ChatSetup, defaults: GenerationParams) -> AnswerPlan:
    """What a chat's values mean for a model with these own values. Of several answers each has its seed."""
    params = generation_params(setup.parameters, defaults)
    count = answers_together(setup.parameters, params)
    seed = params.sampling.seed
    each = [
        dataclasses.replace(
            params,
            sampling=dataclasses.replace(
                params.sampling, seed=None if seed is None else (seed + number) % 2**63
            ),
        )
        for number in range(count)
    ]
    return AnswerPlan(setup.system_prompt, tuple(each))
