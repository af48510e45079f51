"""The report of the kernels as lines for people. Torch-free."""

from __future__ import annotations

from engine.bench.kernel_report import Figure, KernelReport, LeftOut
from engine.bench.kernel_summary import summary
from engine.units import format_bytes

_HEADER = (
    "format  instructions  tokens  activ.  ms/expert   median    GB/s  % of read  TFLOP/s  torch ms"
    "  against torch"
)


def table(report: KernelReport) -> tuple[str, ...]:
    """Lines: the machine, how fast it reads, what was done, and a row for each figure."""
    machine = report.machine
    threads = machine["threads"]
    cores = machine.get("reading_threads", threads)
    others = "" if cores == threads else f" ({cores} for reading and for torch)"
    lines = [
        f"{machine['cpu']}, {threads} threads{others}, torch {machine['torch']}",
        _reading(report),
        f"Experts of {report.hidden} × {report.intermediate}, {report.experts} in a call; ms/expert, GB/s "
        "and TFLOP/s are those of the best call, as for reading.",
        "Kernels were chosen first by their times, as in a calibration; activ.: whether they round "
        "activations to 8 bits.",
    ]
    for name, rotation in report.rotations.items():
        short = " - less than wanted for lack of memory: caches may help" if rotation["short"] else ""
        lines.append(
            f"{name}: {rotation['count']} experts of {format_bytes(rotation['bytes'])} in turn, "
            f"{format_bytes(rotation['count'] * rotation['bytes'])}{short}."
        )
    lines += ["", _HEADER]
    rows: list[Figure | LeftOut] = [*report.figures, *report.left_out]
    formats = list(dict.fromkeys(row.format for row in rows))
    isas = list(dict.fromkeys(row.isa for row in rows))
    rows.sort(key=lambda row: (formats.index(row.format), isas.index(row.isa), row.tokens))
    for row in rows:
        lines.append(_left_out(row) if isinstance(row, LeftOut) else _figure(report, row))
    lines += _summaries(report)
    if not report.complete:
        lines += ["", "Interrupted: the rest was not measured."]
    return tuple(lines)


def _summaries(report: KernelReport) -> list[str]:
    found = summary(report)
    return ["", *found] if found else []


def _reading(report: KernelReport) -> str:
    text = f"Plain reading: {report.read_gbs:.1f} GB/s, the best of all turns"
    if report.reads_differ:
        first, last = report.reads[0], report.reads[-1]
        text += f" ({first:.1f} at the start, {last:.1f} at the end: other programs, or a changing clock)"
    return text + "."


def _figure(report: KernelReport, figure: Figure) -> str:
    best = figure.times.best
    row = (
        f"{figure.format:6}  {figure.isa:12}  {figure.tokens:6}  {figure.activations:6}  {best * 1e3:9.3f}"
        f"  {figure.times.median * 1e3:7.3f}  {figure.gbs:6.1f}  {report.percent_of_read(figure):8.0f}%"
        f"  {report.tflops(figure):7.3f}"
    )
    torch = report.torch.get(figure.tokens)
    return row if torch is None else f"{row}  {torch * 1e3:8.3f}  {torch / best:12.1f}×"


def _left_out(row: LeftOut) -> str:
    return f"{row.format:6}  {row.isa:12}  {row.tokens:6}  left out: one call would take {row.seconds:.1f} s"
