"""A comparison as rows of figures, derived from its records: for the table, the README and the plot."""

from __future__ import annotations

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

    `best` is the policy that wins. Rates are better when larger, times when smaller.
    """

    title: str
    unit: str
    cells: dict[str, float]
    roofline: float | None

    @property
    def best(self) -> str:
        """The policy with the best figure."""
        choose = min if self.unit == "s" else max
        return choose(self.cells, key=self.cells.__getitem__)


def policies(comparison: Comparison) -> list[str]:
    """The policies with records, the program's own last."""
    found = {policy for _, policy in comparison.records}
    return [policy for policy in POLICY_ORDER if policy in found] + sorted(found - set(POLICY_ORDER))


def decode_rows(comparison: Comparison) -> list[Row]:
    """Single tokens, in tokens per second."""
    return [
        row
        for tokens in INPUTS
        if (row := _rate_row(comparison, _scenario(Kind.DECODE, tokens), f"decode after {tokens} tokens"))
    ]


def prompt_rows(comparison: Comparison) -> list[Row]:
    """The time to the first token; the yardstick is copying what is missing, or reading it without a GPU."""
    rows = []
    for tokens in (*INPUTS, *LONG_INPUTS):
        found = _records(comparison, _scenario(Kind.PROMPT, tokens))
        if found:
            floor = _copying(found)
            cells = {policy: record.seconds for policy, record in found.items()}
            rows.append(Row(f"first token of {tokens}", "s", cells, floor))
    return rows


def beam_rows(comparison: Comparison) -> list[Row]:
    """Steps of a beam search per second."""
    return [
        row
        for width in BEAMS
        if (row := _rate_row(comparison, _scenario(Kind.BEAMS, width), f"{width} beams, steps"))
    ]


def placing_rows(comparison: Comparison) -> list[Row]:
    """Popular against random experts on the GPU, in tokens per second."""
    words = {Placing.POPULAR: "popular experts resident", Placing.RANDOM: "random experts resident"}
    return [
        row
        for placing, title in words.items()
        if (row := _rate_row(comparison, _scenario(Kind.DECODE, INPUTS[0], placing), title))
    ]


def answer_rows(comparison: Comparison) -> list[Row]:
    """The paper's grid: tokens per second of a whole answer, its prompt included. Derived, not measured."""
    rows = []
    for tokens in INPUTS:
        prompts = _records(comparison, _scenario(Kind.PROMPT, tokens))
        steps = _records(comparison, _scenario(Kind.DECODE, tokens))
        both = [policy for policy in policies(comparison) if policy in prompts and policy in steps]
        for written in OUTPUTS if both else ():
            cells = {
                policy: written / (prompts[policy].seconds + (written - 1) * steps[policy].seconds)
                for policy in both
            }
            rows.append(Row(f"{tokens} in, {written} out", "tokens/s", cells, None))
    return rows


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


def beam_gains(comparison: Comparison) -> list[BeamGain]:
    """For every policy and width that were measured, with the policy's single tokens."""
    alone = _records(comparison, _scenario(Kind.DECODE, BEAM_INPUT))
    return [
        BeamGain(
            width,
            policy,
            width * alone[policy].seconds / record.seconds,
            width * alone[policy].executions / record.executions,
        )
        for width in BEAMS
        for policy, record in _records(comparison, _scenario(Kind.BEAMS, width)).items()
        if policy in alone and record.executions
    ]


def beam_answer_seconds(record: Record, prompt: Record) -> float:
    """Seconds of a beam search's whole answer of BEAM_OUTPUT tokens, derived from a step and a prompt."""
    return prompt.seconds + (BEAM_OUTPUT - 1) * record.seconds


def _rate_row(comparison: Comparison, scenario: str, title: str) -> Row | None:
    found = _records(comparison, scenario)
    if not found:
        return None
    cells = {policy: 1 / record.seconds for policy, record in found.items()}
    return Row(title, "tokens/s", cells, 1 / _least_floor(found))


def _scenario(kind: Kind, size: int, placing: Placing = Placing.EVEN) -> str:
    return Point(kind, size, "", placing=placing).scenario


def _records(comparison: Comparison, scenario: str) -> dict[str, Record]:
    """A scenario's records by policy, in their order."""
    found = {policy: comparison.find(scenario, policy) for policy in policies(comparison)}
    return {policy: record for policy, record in found.items() if record is not None}


def _least_floor(found: dict[str, Record]) -> float:
    """The floor of the policy whose experts were where most bandwidth is: what the machine allows."""
    return min(record.floor for record in found.values())


def _copying(found: dict[str, Record]) -> float | None:
    """The yardstick of prompts; None where nothing had to be copied."""
    return max(record.floor for record in found.values()) or None
