"""What a run says in a few words: two lines for each format on the best instruction set. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping

from engine.bench.kernel_report import Figure, KernelReport
from kernels.formats import WeightFormat
from kernels.isa import Isa

_MANY = 64  # tokens whose time should be about that of one: both read the weights once
_FEW = (1, 4)  # tokens for which a smaller format should be faster than bf16

# Token count to figure, of one format on one instruction set.
_Figures = Mapping[int, Figure]


def summary(report: KernelReport) -> list[str]:
    """The lines; figures that were not measured are left out of them, and so is a format without any."""
    lines = []
    for name in dict.fromkeys(figure.format for figure in report.figures):
        isa = max({each.isa for each in report.figures if each.format == name}, key=_level)
        figures = _figures(report, name, isa)
        plain = {} if name == WeightFormat.BF16 else _figures(report, WeightFormat.BF16, isa)
        start = f"{name} with {isa}: "
        rows = [row for row in (_memory(report, figures), _arithmetic(report, figures, plain)) if row]
        lines += [(start if not place else " " * len(start)) + row for place, row in enumerate(rows)]
    return lines


def _memory(report: KernelReport, figures: _Figures) -> str:
    """How near one token is to reading alone, to torch, and to many tokens."""
    one = figures.get(1)
    if one is None:
        return ""
    words = f"1 token at {report.percent_of_read(one):.0f}% of plain reading"
    if 1 in report.torch:
        words += f", {report.torch[1] / one.times.best:.1f}× as fast as torch in bf16"
    if _MANY in figures:
        words += f"; {_MANY} tokens take {figures[_MANY].times.best / one.times.best:.2f}× as long"
    return f"{words}."


def _arithmetic(report: KernelReport, figures: _Figures, plain: _Figures) -> str:
    """Operations with the most tokens, and how much faster few tokens are than in bf16."""
    most = max(figures)
    words = f"{report.tflops(figures[most]):.2f} TFLOP/s with {_named(most)}"
    counts = [count for count in _FEW if count in plain and count in figures]
    for place, count in enumerate(counts):
        faster = plain[count].times.best / figures[count].times.best
        words += (
            f", {faster:.2f}× with {count}"
            if place
            else f"; {faster:.2f}× as fast as bf16 with {_named(count)}"
        )
    return f"{words}."


def _figures(report: KernelReport, name: str, isa: str) -> _Figures:
    return {each.tokens: each for each in report.figures if (each.format, each.isa) == (name, isa)}


def _named(tokens: int) -> str:
    return f"{tokens} token{'s' if tokens > 1 else ''}"


def _level(isa: str) -> int:
    """The level's place; one that a saved run of a later version has comes last."""
    return Isa(isa).level if isa in list(Isa) else len(Isa)
