"""A comparison as lines for people, or as Markdown for a README. Torch-free."""

from __future__ import annotations

import textwrap

from engine.bench import compare_rows as rows
from engine.bench.compare_points import DECODE_STEPS, INPUTS, MIXTRAL_ZIPF
from engine.bench.compare_store import Comparison, Record
from engine.units import format_bytes

_WIDTH, _LINE = 10, 108


def table(comparison: Comparison) -> tuple[str, ...]:
    """The machine, then a row for each scenario and a column for each policy."""
    lines = [*head(comparison), ""]
    if not comparison.records:
        return (*lines, "Nothing was measured.", *_missing(comparison))
    names = rows.policies(comparison)
    lines.append(
        f"{'':30}"
        + "".join(f"{rows.column(comparison, name):>{_WIDTH}}" for name in names)
        + f"{'roofline':>{_WIDTH}}"
    )
    for title, section in _sections(comparison):
        lines.append(title)
        for row in section:
            cells = "".join(f"{_cell(row.cells.get(name)):>{_WIDTH}}" for name in names)
            lines.append(f"  {row.title:28}{cells}{_cell(row.roofline):>{_WIDTH}}")
    lines += ["", *_summary(comparison), *_gains(comparison)]
    for text in explanations(comparison):
        lines += textwrap.wrap(text, _LINE)
    return (*lines, *_missing(comparison))


def _missing(comparison: Comparison) -> list[str]:
    """What was not measured and why."""
    lines = []
    if comparison.left_out:
        lines += textwrap.wrap(f"Left out for lack of time: {'; '.join(comparison.left_out)}.", _LINE)
        lines.append("The same command goes on with them; --full takes the time for all.")
    elif not comparison.complete:
        lines.append("Interrupted: the same command goes on with the rest.")
    return lines


def markdown(comparison: Comparison) -> tuple[str, ...]:
    """One table for a README, the best figure of each row in bold, with the machine and the command."""
    names = rows.policies(comparison)
    lines = [
        "| | " + " | ".join(rows.column(comparison, name) for name in names) + " | bandwidth allows |",
        "|---|" + "---:|" * (len(names) + 1),
    ]
    chosen = [*rows.decode_rows(comparison)[:1], *rows.prompt_rows(comparison), *rows.beam_rows(comparison)]
    for row in [*chosen, *rows.placing_rows(comparison)]:
        cells = [
            f"**{_cell(value)}**" if name == row.best and len(names) > 1 else _cell(value)
            for name in names
            for value in (row.cells.get(name),)
        ]
        lines.append(f"| {row.title}, {row.unit} | " + " | ".join(cells) + f" | {_cell(row.roofline)} |")
    command = ("", f"    {comparison.command}") if comparison.command else ()
    return (*lines, "", *head(comparison), *explanations(comparison), *command)


def head(comparison: Comparison) -> list[str]:
    """What was compared where."""
    setup, machine = comparison.setup, comparison.setup.machine
    lines = [
        f"{setup.model}, experts in {setup.precision}, routing: {setup.routing}.",
        f"{machine['cpu']}, {machine['threads']} threads ({machine['isa']}).",
    ]
    newest = _newest(comparison)
    if machine["gpu"]:
        budget = "what was free" if setup.vram_budget is None else format_bytes(setup.vram_budget)
        placed = "" if newest is None else f": {newest.resident:.0%} of the experts live there"
        lines.append(f"{machine['gpu']} with a budget of {budget}{placed}.")
    else:
        lines.append("No graphics card: every policy means the same here, so one was measured.")
    if newest is not None:
        lines.append(f"Measured: {newest.rates.text()}")
    return lines


def explanations(comparison: Comparison) -> list[str]:
    """How to read the figures."""
    prompts = "reading once the experts that it needs."
    if comparison.setup.machine["gpu"]:
        prompts = "copying once what the GPU lacks, which the CPU's share can undercut."
    lines = [
        f"Each prompt was read once, and {DECODE_STEPS} tokens were decoded after it; whole answers are "
        "derived from both. Roofline: the bytes of weights that must move over the measured bandwidth; for a "
        f"prompt, {prompts}"
    ]
    if rows.placing_rows(comparison):
        lines.append(
            f"Popular and random placement: routing with a Zipf exponent (of {MIXTRAL_ZIPF:g} unless set), "
            "which makes popularity as useful as it is for Mixtral's real routing."
        )
    return lines


def _sections(comparison: Comparison) -> list[tuple[str, list[rows.Row]]]:
    sections = [
        ("one token after the other, tokens/s", rows.decode_rows(comparison)),
        ("time to the first token, s", rows.prompt_rows(comparison)),
        ("beam search, tokens of the answer/s", rows.beam_rows(comparison)),
        (f"placement, decode after {INPUTS[0]}, tokens/s", rows.placing_rows(comparison)),
        ("whole answers, tokens/s (derived)", _answers(comparison)),
    ]
    return [(title, found) for title, found in sections if found]


def _answers(comparison: Comparison) -> list[rows.Row]:
    single = [row for tokens in INPUTS for row in rows.answer_rows(comparison, tokens)]
    return single + rows.beam_answer_rows(comparison)


def _summary(comparison: Comparison) -> list[str]:
    found = rows.summary(comparison)
    if found is None:
        return []
    lines = [
        f"makespan decodes at {found.percent:.0f}% of the roofline, {found.ahead:.2f} × as fast as the "
        f"better of paper and cpu (bandwidth together over the CPU's alone: {found.allowed:.2f})."
    ]
    if found.prompts:
        ratios = ", ".join(f"{tokens}: {ratio:.2f}" for tokens, ratio in found.prompts.items())
        lines.append(f"Its first tokens against copying alone, by tokens of the prompt: {ratios}.")
    return lines


def _gains(comparison: Comparison) -> list[str]:
    """A line for each policy."""
    by_policy: dict[str, list[str]] = {}
    for each in rows.beam_gains(comparison):
        words = f"{each.width} beams {each.gain:.2f} × ({each.percent:.0f}% of {each.allowed:.2f})"
        by_policy.setdefault(rows.column(comparison, each.policy), []).append(words)
    if not by_policy:
        return []
    title = "All beams together against one by one, and the share of what fewer runs of experts allow:"
    return [title, *(f"  {policy}: {', '.join(words)}." for policy, words in by_policy.items())]


def _newest(comparison: Comparison) -> Record | None:
    return next(reversed(comparison.records.values()), None)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 0.01:  # as three digits after the point it would be nothing
        return f"{value:.2g}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"
