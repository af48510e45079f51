"""A comparison as rows of figures, derived from its records: for the table, the README and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.compare_points import (
    BEAM_INPUT,
    BEAM_OUTPUT,
    BEAMS,
    INPUTS,
    LONG_INPUTS,
    OUTPUTS,
    Kind,
    Placing,
    Point,
)
from engine.bench.compare_store import Comparison, Record

POLICY_ORDER = ("paper", "stream", "cpu", "makespan")


@dataclass(frozen=True)
class Row:
    """One scenario: `cells` by policy, in `unit`; `roofline` in the same unit, None where there is none.

    `size`: what varies between the rows of a kind, tokens or beams.
    """

    title: str
    size: int
    unit: str
    cells: dict[str, float]
    roofline: float | None

    @property
    def best(self) -> str:
        """The policy with the best figure: the shortest time, or the highest rate."""
        choose = min if self.unit == "s" else max
        return choose(self.cells, key=self.cells.__getitem__)


def policies(comparison: Comparison) -> list[str]:
    """The policies with records, the program's own last."""
    found = {policy for _, policy in comparison.records}
    return [policy for policy in POLICY_ORDER if policy in found] + sorted(found - set(POLICY_ORDER))


def column(comparison: Comparison, policy: str) -> str:
    """What a policy's figures are called: its name, unless all policies mean the same."""
    return policy if comparison.setup.machine["gpu"] else "any policy"


def decode_rows(comparison: Comparison) -> list[Row]:
    """Single tokens, in tokens per second."""
    return _rate_rows(comparison, Kind.DECODE, INPUTS, "decode after {} tokens")


def prompt_rows(comparison: Comparison) -> list[Row]:
    """The time to the first token; the yardstick is copying what is missing, or reading it without a GPU."""
    rows = []
    for tokens in (*INPUTS, *LONG_INPUTS):
        found = _records(comparison, Kind.PROMPT, tokens)
        if found:
            cells = {policy: record.seconds for policy, record in found.items()}
            floor = max(record.floor for record in found.values())
            rows.append(Row(f"first token of {tokens}", tokens, "s", cells, floor or None))
    return rows


def beam_rows(comparison: Comparison) -> list[Row]:
    """Beam search, in tokens of the answer per second, that is, in steps."""
    return _rate_rows(comparison, Kind.BEAMS, BEAMS, "{} beams")


def placing_rows(comparison: Comparison) -> list[Row]:
    """Popular against random experts on the GPU, in tokens per second."""
    return [
        row
        for placing in (Placing.POPULAR, Placing.RANDOM)
        for row in _rate_rows(comparison, Kind.DECODE, INPUTS[:1], f"{placing} experts resident", placing)
    ]


def answer_rows(comparison: Comparison, tokens: int) -> list[Row]:
    """A part of the paper's grid: whole answers to prompts of `tokens`, tokens per second, derived."""
    steps = _records(comparison, Kind.DECODE, tokens)
    return [
        Row(f"{tokens} in, {written} out", written, "tokens/s", cells, None)
        for written in OUTPUTS
        if (cells := _answers(comparison, tokens, written, steps))
    ]


def beam_answer_rows(comparison: Comparison) -> list[Row]:
    """Whole answers of beam searches, in tokens per second, derived as `answer_rows`."""
    return [
        Row(f"{BEAM_INPUT} in, {BEAM_OUTPUT} out, {width} beams", width, "tokens/s", cells, None)
        for width in BEAMS
        if (cells := _answers(comparison, BEAM_INPUT, BEAM_OUTPUT, _records(comparison, Kind.BEAMS, width)))
    ]


@dataclass(frozen=True)
class BeamGain:
    """What running all beams together brings for one policy and width.

    `gain`: against the same policy run for each beam alone; `allowed`: executions beam by beam over the
    different experts of a step, as counted: with the weights' bandwidth as the only limit, the gain.
    """

    width: int
    policy: str
    gain: float
    allowed: float

    @property
    def percent(self) -> float:
        """The gain in percent of what was to be gained."""
        return 100 * self.gain / self.allowed


@dataclass(frozen=True)
class Summary:
    """How the program's own policy does. `percent` of the roofline in decode after the shortest prompt.

    `ahead`: its speed there over that of the better of the paper's policy and the CPU alone; `allowed`: what
    moving bytes both ways at once allows over the CPU alone. `prompts`: tokens to the time to the first token
    over copying once what the GPU lacks.
    """

    percent: float
    ahead: float
    allowed: float
    prompts: dict[int, float]


def summary(comparison: Comparison) -> Summary | None:
    """The summary; None without a GPU, or where decode was not measured with all three policies."""
    found = _records(comparison, Kind.DECODE, INPUTS[0])
    if comparison.setup.machine["gpu"] is None or not {"paper", "cpu", "makespan"} <= found.keys():
        return None
    own = found["makespan"]
    prompts = {
        row.size: row.cells["makespan"] / row.roofline
        for row in prompt_rows(comparison)
        if row.roofline is not None and "makespan" in row.cells
    }
    better = min(found["paper"].seconds, found["cpu"].seconds)
    allowed = own.rates.together / own.rates.cpu
    return Summary(100 * own.floor / own.seconds, better / own.seconds, allowed, prompts)


def beam_gains(comparison: Comparison) -> list[BeamGain]:
    """For every policy and width that were measured, with the policy's single tokens."""
    alone = _records(comparison, Kind.DECODE, BEAM_INPUT)
    return [
        BeamGain(
            width,
            policy,
            width * alone[policy].seconds / record.seconds,
            width * alone[policy].executions / record.executions,
        )
        for width in BEAMS
        for policy, record in _records(comparison, Kind.BEAMS, width).items()
        if policy in alone and record.executions
    ]


def _rate_rows(
    comparison: Comparison, kind: Kind, sizes: Sequence[int], title: str, placing: Placing = Placing.USUAL
) -> list[Row]:
    """Steps per second; the roofline is that of the policy whose experts lay where most bandwidth is."""
    rows = []
    for size in sizes:
        found = _records(comparison, kind, size, placing)
        if found:
            cells = {policy: 1 / record.seconds for policy, record in found.items()}
            floor = min(record.floor for record in found.values())
            rows.append(Row(title.format(size), size, "tokens/s", cells, 1 / floor if floor else None))
    return rows


def _answers(comparison: Comparison, tokens: int, written: int, steps: dict[str, Record]) -> dict[str, float]:
    """Tokens per second of whole answers by policy: the first token comes with the prompt."""
    prompts = _records(comparison, Kind.PROMPT, tokens)
    return {
        policy: written / (prompts[policy].seconds + (written - 1) * step.seconds)
        for policy, step in steps.items()
        if policy in prompts
    }


def _records(
    comparison: Comparison, kind: Kind, size: int, placing: Placing = Placing.USUAL
) -> dict[str, Record]:
    """A scenario's records by policy, in their order."""
    scenario = Point(kind, size, "", placing=placing).scenario
    found = {policy: comparison.find(scenario, policy) for policy in policies(comparison)}
    return {policy: record for policy, record in found.items() if record is not None}
