"""What `fiddler bench compare` measures: the paper's scenarios as points, and how long each takes.

The scenarios are those of Fiddler (arXiv 2402.07033, section 4): answers to short prompts, the time to the
first token of long ones, and beam search; and one placement against another. Torch-free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.bench.rates import Rates

INPUTS, OUTPUTS = (32, 64, 128, 256), (64, 128, 256, 512)  # single batch
LONG_INPUTS = (512, 1024, 2048, 4096)
BEAMS, BEAM_INPUT, BEAM_OUTPUT = (4, 8, 16), 32, 64
# Steps of a search whose times do not count: where a GPU decodes by captured graphs, the first captures them.
BEAM_WARM_UP = 2
DECODE_STEPS = 24  # of a point: enough for a median where each layer of each token draws its experts anew
# Measured popularity lets 24 to 28 % of Mixtral's choices be resident where chance would be 22 %; with this
# exponent it is 26 %.
MIXTRAL_ZIPF = 0.2
# Of a quick run, which leaves out what would not end in time.
_QUICK_INPUTS, _QUICK_BEAM_STEPS = (32, 256), 8
_FLOPS = 5e12  # operations per second of one machine's CPU in prefill: for expectations only


class Kind(StrEnum):
    """What a point measures."""

    PROMPT = "prompt"  # the time to the first token
    DECODE = "decode"  # single tokens after a prompt
    BEAMS = "beams"  # steps of a beam search


class Placing(StrEnum):
    """How the experts on the GPU were chosen."""

    USUAL = "usual"  # as the program does where it knows no popularity; routing as the subject says
    POPULAR = "popular"  # the most popular ones of each layer, equally many in each
    RANDOM = "random"  # equally many in each, without regard to popularity


@dataclass(frozen=True)
class Point:
    """One figure.

    `size`: tokens of the prompt, or beams; `steps`: single tokens or steps of the search, 0 for prompts.
    """

    kind: Kind
    size: int
    policy: str
    steps: int = 0
    placing: Placing = Placing.USUAL

    @property
    def tokens(self) -> int:
        """Tokens of context that the point takes."""
        if self.kind is Kind.BEAMS:
            return BEAM_INPUT + self.size * (self.steps + BEAM_WARM_UP + 2)
        return self.size + self.steps + 1

    @property
    def scenario(self) -> str:
        """What is measured, without the policy: a key for records."""
        name = f"{self.kind}/{self.size}"
        return name if self.placing is Placing.USUAL else f"{name}/{self.placing}"


@dataclass(frozen=True)
class Sizes:
    """A model as far as times depend on it. `missing`: the share of its experts that are not on the GPU."""

    layers: int
    experts: int
    top_k: int
    expert_bytes: int
    expert_parameters: int
    missing: float


def points(policies: Sequence[str], *, full: bool, placements: bool) -> list[Point]:
    """All points, those first that tell most. `placements`: whether popularity can be set."""
    inputs = INPUTS if full else _QUICK_INPUTS
    beam_steps = DECODE_STEPS if full else _QUICK_BEAM_STEPS
    scenarios = [(Kind.DECODE, inputs[0], DECODE_STEPS), (Kind.PROMPT, inputs[0], 0)]
    scenarios += [(Kind.PROMPT, tokens, 0) for tokens in LONG_INPUTS]
    scenarios += [(Kind.BEAMS, width, beam_steps) for width in BEAMS]
    for tokens in inputs[1:]:
        scenarios += [(Kind.PROMPT, tokens, 0), (Kind.DECODE, tokens, DECODE_STEPS)]
    found = [Point(kind, size, policy, steps) for kind, size, steps in scenarios for policy in policies]
    if placements:
        found += [
            Point(Kind.DECODE, inputs[0], policy, DECODE_STEPS, placing)
            for policy in policies
            for placing in (Placing.POPULAR, Placing.RANDOM)
        ]
    return found


def needed_context() -> int:
    """Tokens that the context must hold for any point: the same for all runs, as it takes experts' room."""
    return max(point.tokens for point in points(("any",), full=True, placements=True))


def distinct(experts: int, top_k: int, tokens: float) -> float:
    """Different experts that so many tokens choose in a layer on average, all experts being alike."""
    return float(experts * (1 - (1 - top_k / experts) ** tokens))


def expected_seconds(point: Point, sizes: Sizes, rates: Rates) -> float:
    """About how long a point takes, to plan with; a prompt that comes before it included."""
    if point.kind is Kind.PROMPT:
        return _prompt_seconds(point.size, point.policy, sizes, rates)
    width = point.size if point.kind is Kind.BEAMS else 1
    before = BEAM_INPUT if point.kind is Kind.BEAMS else point.size
    moved = distinct(sizes.experts, sizes.top_k, width) * sizes.layers * sizes.missing * sizes.expert_bytes
    step = 1.2 * moved / _rate(point.policy, rates)
    steps = point.steps + (BEAM_WARM_UP if point.kind is Kind.BEAMS else 0)
    return _prompt_seconds(before, point.policy, sizes, rates) + steps * step


def _prompt_seconds(tokens: int, policy: str, sizes: Sizes, rates: Rates) -> float:
    touched = distinct(sizes.experts, sizes.top_k, tokens) * sizes.layers
    seconds = touched * sizes.missing * sizes.expert_bytes / (rates.copy or rates.cpu)
    if policy == "cpu" or rates.copy is None:
        missing = sizes.missing if rates.copy is not None else 1.0
        work = 2 * tokens * sizes.top_k * sizes.layers * missing * sizes.expert_parameters
        seconds = max(seconds, work / _FLOPS)
    return 1.2 * seconds


def _rate(policy: str, rates: Rates) -> float:
    """Bytes per second at which a policy brings missing experts to work, one token at a time."""
    if rates.copy is None:
        return rates.cpu
    return {"stream": rates.copy, "makespan": rates.together}.get(policy, rates.cpu)
