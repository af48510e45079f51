"""Draws a comparison: answers by length, first tokens by prompt, beams by width. matplotlib is optional."""

from __future__ import annotations

import io
from typing import Any

from engine.bench import compare_rows as rows
from engine.bench.compare_points import BEAMS, INPUTS, LONG_INPUTS, OUTPUTS
from engine.bench.compare_store import Comparison
from engine.bench.compare_table import head
from engine.bench.kernel_plot import check_can_draw

# Okabe and Ito's colours, which colour-blind people can tell apart; markers tell the lines without colour.
_STYLES = {
    "paper": ("#E69F00", "s"),
    "stream": ("#CC79A7", "v"),
    "cpu": ("#009E73", "^"),
    "makespan": ("#0072B2", "o"),
}
_OTHER = ("#000000", "x")
_PANEL = (4.4, 4.6)  # inches
_DPI = 150


def draw(comparison: Comparison) -> bytes:
    """The picture as a PNG. The comparison has at least one record. Raises BenchError without matplotlib."""
    check_can_draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no display, no state of the whole process
    from matplotlib.figure import Figure as Picture

    answers = [row for row in rows.answer_rows(comparison) if row.title.startswith(f"{INPUTS[0]} in")]
    prompts = [row for row in rows.prompt_rows(comparison) if int(row.title.split()[-1]) in LONG_INPUTS]
    panels: list[tuple[str, str, str, list[rows.Row], tuple[int, ...]]] = [
        ("Answers to 32 tokens", "tokens of the answer", "tokens/s", answers, OUTPUTS),
        ("Long prompts", "tokens of the prompt", "s to the first token", prompts, LONG_INPUTS),
        ("Beam search", "beams", "steps/s", rows.beam_rows(comparison), BEAMS),
    ]
    panels = [panel for panel in panels if panel[3]]
    width, height = _PANEL
    count = max(1, len(panels))
    picture = Picture(figsize=(max(7.0, width * count), height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(1, count, squeeze=False)[0]
    for axis, (title, across, up, found, sizes) in zip(axes, panels, strict=False):
        _draw_panel(axis, found, sizes)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(across)
        axis.set_ylabel(up)
    picture.suptitle("\n".join(head(comparison)[:3]), fontsize=9)
    lines: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        lines.update(zip(labels, handles, strict=True))
    picture.legend(
        lines.values(), lines, loc="outside lower center", ncols=max(1, len(lines)), frameon=False, fontsize=9
    )
    png = io.BytesIO()
    picture.savefig(png, format="png")
    return png.getvalue()


def _draw_panel(axis: Any, found: list[rows.Row], sizes: tuple[int, ...]) -> None:
    """A line for each policy over the sizes that were measured, and the roofline dotted."""
    measured = [size for size in sizes if any(_size(row, sizes) == size for row in found)]
    for policy in dict.fromkeys(policy for row in found for policy in row.cells):
        points = [(_size(row, sizes), row.cells[policy]) for row in found if policy in row.cells]
        colour, marker = _STYLES.get(policy, _OTHER)
        axis.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=policy)
    limits = [(_size(row, sizes), row.roofline) for row in found if row.roofline is not None]
    if limits:
        axis.plot(*zip(*limits, strict=True), color="black", linewidth=1, linestyle=":", label="roofline")
    axis.set_xscale("log", base=2)
    axis.set_xticks(measured, [str(size) for size in measured])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _size(row: rows.Row, sizes: tuple[int, ...]) -> int:
    """The number in a row's title that is one of the sizes, the last if there are several."""
    numbers = [int(word.strip(",")) for word in row.title.split() if word.strip(",").isdigit()]
    return [number for number in numbers if number in sizes][-1]
