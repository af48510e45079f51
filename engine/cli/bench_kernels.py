"""`fiddler bench kernels`: the CPU's expert kernels beside plain reading and torch."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.bench import kernel_request as requests
from engine.bench.errors import BenchError
from engine.bench.kernel_plot import check_can_draw, draw
from engine.bench.kernel_report import KernelReport, read_report
from engine.bench.kernel_table import table
from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.errors import Cancelled
from engine.files import write_atomically
from engine.progress import CancelToken
from kernels.formats import WeightFormat

if TYPE_CHECKING:
    from engine.bench.kernel_run import KernelRun

_DEFAULTS = requests.KernelRequest


def add_to(benchmarks: Any) -> None:
    """Register the benchmark."""
    parser = benchmarks.add_parser(
        "kernels",
        help="time experts in every format on every instruction set",
        description="Measures how fast memory is read, then one expert in every format, on every instruction "
        "set, for several numbers of tokens, and torch beside it. Where there are several kernels, those "
        "that a calibration would choose are taken. Takes a few minutes; Ctrl-C keeps what is measured. "
        "Other programs should rest meanwhile.",
    )
    parser.add_argument(
        "--formats", default=",".join(WeightFormat), metavar="LIST", help="default: %(default)s"
    )
    parser.add_argument("--isa", metavar="LIST", help="instruction sets (default: all that this CPU has)")
    parser.add_argument(
        "--tokens",
        default=",".join(map(str, requests.DEFAULT_TOKENS)),
        metavar="LIST",
        help="tokens of an expert (default: %(default)s)",
    )
    parser.add_argument(
        "--experts",
        type=int,
        default=_DEFAULTS.experts,
        metavar="N",
        help="in one call (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: as the engine's)")
    parser.add_argument(
        "--shape",
        choices=requests.SHAPES,
        default="mixtral",
        help="the model's experts (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=_DEFAULTS.seconds,
        metavar="S",
        help="per figure (default: %(default)s)",
    )
    parser.add_argument(
        "--exact-activations",
        action="store_true",
        help="use no kernels that round activations to 8 bits (by default, where they are faster)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the result")
    parser.add_argument(
        "--from",
        type=Path,
        metavar="FILE.json",
        dest="saved",
        help="show or draw a saved run, measure nothing",
    )
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=check)


def request(arguments: argparse.Namespace) -> requests.KernelRequest:
    """What the arguments ask for. Raises EngineError for what does not exist here."""
    hidden, intermediate = requests.SHAPES[arguments.shape]
    return requests.KernelRequest(
        formats=requests.parse_formats(arguments.formats),
        isas=requests.parse_isas(arguments.isa),
        tokens=requests.parse_tokens(arguments.tokens),
        hidden=hidden,
        intermediate=intermediate,
        experts=arguments.experts,
        seconds=arguments.seconds,
        threads=arguments.threads,
        exact_activations=arguments.exact_activations,
    )


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be, before minutes of measuring. Raises EngineError."""
    if arguments.saved is None:
        request(arguments)
    if arguments.plot is not None:
        check_target(arguments.plot)
        check_can_draw()


def check_target(path: Path) -> None:
    """Raise BenchError for a path that no picture can be written to."""
    if path.suffix.lower() != ".png":
        raise BenchError(f"“{path.name}” is no PNG file.", action="Name a file that ends in .png.")
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BenchError(
            f"The picture cannot be written to {path}.",
            why=f"{folder} is no folder that can be written to, or {path.name} is a folder.",
            action="Name a file in a folder that exists.",
        )


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Measure (or read a saved run), print, draw. An interrupted run is shown as far as it got."""
    if arguments.saved is not None:
        report = read_report(arguments.saved)
    else:
        report = _measure(start(request(arguments), console, cancel))
    console.result(report.to_dict(), table(report))
    if arguments.plot is not None and report.figures:
        write_atomically(arguments.plot, draw(report))
        console.note(f"Drawn to {arguments.plot}.")
    return 0


def start(asked: requests.KernelRequest, console: Console, cancel: CancelToken) -> KernelRun:
    """The run that will be measured."""
    shared.quiet_torch()
    from engine.bench.kernel_run import KernelRun

    return KernelRun(asked, progress=console.progress, cancel=cancel)


def _measure(run: KernelRun) -> KernelReport:
    """The whole report, or what there is after Ctrl-C. Raises Cancelled if that is nothing."""
    try:
        run.measure()
    except Cancelled:
        if not run.report.reads:
            raise
    return run.report
