"""Draws a report of the kernels: a panel for each format, time against tokens. matplotlib is optional."""

from __future__ import annotations

import importlib
import io
from typing import Any

from engine.bench.errors import BenchError
from engine.bench.kernel_report import EIGHT_BIT, Figure, KernelReport
from engine.isa_words import isa_words

# Okabe and Ito's colours, which colour-blind people can tell apart; markers tell the lines without colour.
_STYLES = {
    "portable": ("#CC79A7", "v"),
    "avx2": ("#E69F00", "s"),
    "avx512": ("#009E73", "^"),
    "avx512_bf16": ("#0072B2", "o"),
    "amx": ("#D55E00", "D"),
}
_OTHER = ("#000000", "x")
_TORCH = "#666666"
_HOLLOW: dict[str, Any] = {"markersize": 5, "markerfacecolor": "white"}
_PANEL = (4.4, 4.6)  # inches
_DPI = 150


def check_can_draw() -> None:
    """Raise BenchError where matplotlib is missing: before minutes of measuring, not after."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise BenchError(
            "Drawing needs matplotlib, which is not installed.",
            why=f"Python says: {error}.",
            action="Install it beside the program (in a checkout: .venv/bin/pip install matplotlib), or leave"
            " --plot out: a run that was kept in a file can be drawn later.",
        ) from error


def draw(report: KernelReport) -> bytes:
    """The picture as a PNG. `report` has at least one figure. Raises BenchError without matplotlib."""
    check_can_draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no display, no state of the whole process
    from matplotlib.figure import Figure as Picture

    formats = list(dict.fromkeys(figure.format for figure in report.figures))
    width, height = _PANEL
    picture = Picture(figsize=(max(7.0, width * len(formats)), height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(picture)
    panels = picture.subplots(1, len(formats), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, formats, strict=True):
        _draw_panel(panel, report, [figure for figure in report.figures if figure.format == name])
    panels[0].set_ylabel("ms per expert (the best call)")
    floors = [figure.nbytes / report.read_gbs / 1e6 for figure in report.figures]
    panels[0].set_ylim(bottom=0.6 * min(floors + [figure.times.best * 1e3 for figure in report.figures]))
    machine = report.machine
    picture.suptitle(
        f"One expert of {report.hidden} × {report.intermediate} on {machine['threads']} threads, "
        f"memory read at {report.read_gbs:.0f} GB/s\n{machine['cpu']}",
        fontsize=11,
    )
    lines: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        lines.update(zip(labels, handles, strict=True))
    picture.legend(
        lines.values(),
        lines,
        loc="outside lower center",
        ncols=len(lines) if len(formats) > 1 else 4,
        frameon=False,
        fontsize=9,
    )
    png = io.BytesIO()
    picture.savefig(png, format="png")
    return png.getvalue()


def _draw_panel(panel: Any, report: KernelReport, figures: list[Figure]) -> None:
    """One format: a line for each instruction set, torch dashed, and the time that reading alone takes."""
    from matplotlib.ticker import LogLocator

    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    for isa in dict.fromkeys(figure.isa for figure in figures):
        points = sorted((figure.tokens, figure.times.best * 1e3) for figure in figures if figure.isa == isa)
        colour, marker = _STYLES.get(isa, _OTHER)
        label = "portable" if isa == "portable" else isa_words(isa)
        panel.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=label)
        for each in figures:
            if each.isa == isa and each.activations == EIGHT_BIT:
                panel.plot(each.tokens, each.times.best * 1e3, marker, color=colour, **_HOLLOW)
    if any(each.activations == EIGHT_BIT for each in figures):
        panel.plot([], [], "o", color="black", **_HOLLOW, label="hollow: activations in 8 bits")
    if report.torch:
        points = sorted((tokens, seconds * 1e3) for tokens, seconds in report.torch.items())
        panel.plot(*zip(*points, strict=True), color=_TORCH, linestyle="--", marker=".", label="torch (bf16)")
    floor = figures[0].nbytes / report.read_gbs / 1e6
    panel.axhline(floor, color="black", linewidth=1, linestyle=":", label="reading the weights once")
    panel.annotate(
        f"{floor:.2f} ms",
        (0.98, floor),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
    )
    tokens = sorted({figure.tokens for figure in report.figures})
    panel.set_xticks(tokens, [str(count) for count in tokens])
    panel.minorticks_off()
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.set_xlabel("tokens of the expert")
    panel.set_title(f"{figures[0].format}, {figures[0].nbytes / 1e6:.0f} MB", fontsize=10)
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
