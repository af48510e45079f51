"""Draws a comparison: answers by length, first tokens by prompt, beams by width. matplotlib is optional."""

from __future__ import annotations

import io
from typing import Any

from engine.bench import compare_rows as rows
from engine.bench.compare_points import INPUTS, LONG_INPUTS
from engine.bench.compare_store import Comparison
from engine.bench.compare_table import head
from engine.bench.kernel_plot import check_can_draw

# Okabe and Ito's colours, which colour-blind people can tell apart; markers tell the lines without colour.
# The paper's is dashed: in decode it lies on the CPU's.
_STYLES = {
    "paper": ("#E69F00", "s", "--"),
    "stream": ("#CC79A7", "v", "-"),
    "cpu": ("#009E73", "^", "-"),
    "makespan": ("#0072B2", "o", "-"),
}
_OTHER = ("#000000", "x", "-")
_PANEL = (4.4, 4.6)  # inches
_DPI = 150
_ROOM = 1.05  # above the highest figure, whose marker would be cut otherwise


def draw(comparison: Comparison) -> bytes:
    """The picture as a PNG. The comparison has at least one record. Raises BenchError without matplotlib."""
    check_can_draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no display, no state of the whole process
    from matplotlib.figure import Figure as Picture

    answers = rows.answer_rows(comparison, INPUTS[0])
    prompts = [row for row in rows.prompt_rows(comparison) if row.size in LONG_INPUTS]
    panels = [
        (f"Answers to {INPUTS[0]} tokens", "tokens of the answer", "tokens/s", answers),
        ("Long prompts", "tokens of the prompt", "s to the first token", prompts),
        ("Beam search", "beams", "tokens of the answer/s", rows.beam_rows(comparison)),
    ]
    panels = [panel for panel in panels if panel[-1]]
    width, height = _PANEL
    count = max(1, len(panels))
    picture = Picture(figsize=(max(7.0, width * count), height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(1, count, squeeze=False)[0]
    for axis, (title, across, up, found) in zip(axes, panels, strict=False):
        _draw_panel(axis, comparison, found)
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


def _draw_panel(axis: Any, comparison: Comparison, found: list[rows.Row]) -> None:
    """A line for each policy over the sizes that were measured, and the roofline dotted."""
    for policy in dict.fromkeys(policy for row in found for policy in row.cells):
        points = [(row.size, row.cells[policy]) for row in found if policy in row.cells]
        colour, marker, line = _STYLES.get(policy, _OTHER)
        label = rows.column(comparison, policy)
        axis.plot(
            *zip(*points, strict=True), color=colour, marker=marker, linestyle=line, markersize=5, label=label
        )
    limits = [(row.size, row.roofline) for row in found if row.roofline is not None]
    if limits:
        axis.plot(*zip(*limits, strict=True), color="black", linewidth=1, linestyle=":", label="roofline")
    axis.set_xscale("log", base=2)
    axis.set_xticks([row.size for row in found], [str(row.size) for row in found])
    axis.minorticks_off()
    axis.set_ylim(0, _ROOM * axis.get_ylim()[1])
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
