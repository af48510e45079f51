"""`fiddler bench compare`: the policies against each other in the scenarios of Fiddler's paper."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import paths
from engine.bench import compare_points as points
from engine.bench.compare_plot import draw
from engine.bench.compare_rows import POLICY_ORDER
from engine.bench.compare_store import CompareStore, Comparison
from engine.bench.compare_table import markdown, table
from engine.bench.errors import BenchError
from engine.bench.kernel_plot import check_can_draw
from engine.bench.model_request import Subject
from engine.cli import arguments as shared
from engine.cli.bench_kernels import check_target
from engine.cli.bench_model import add_subject, subject, with_folder
from engine.cli.console import Console
from engine.errors import Cancelled
from engine.files import write_atomically
from engine.progress import CancelToken

_REPEATED = (  # arguments that a measurement depends on
    *("preset", "model", "layers", "zipf", "reuse", "seed", "precision", "exact_activations"),
    *("device", "vram_budget", "context", "threads"),
)
_QUICK_SECONDS = 7.5 * 60  # of a run that shall be over in 8 minutes: printing and ending take the rest


def add_to(benchmarks: Any) -> None:
    """Register the benchmark."""
    parser = benchmarks.add_parser(
        "compare",
        help="hold the policies against each other, as the paper does",
        description="Measures every policy in the scenarios of the paper: answers to short prompts, the "
        "time to the first token of long ones, beam search, and experts placed by popularity or at random. "
        f"Prompts are read once, and {points.DECODE_STEPS} tokens decoded after each; whole answers are "
        "derived from both. Each figure is kept in a file as soon as it is there; a later run goes on with "
        "the others. Other programs should rest meanwhile.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="some points, within 8 minutes (the default)")
    which.add_argument("--full", action="store_true", help="every point, however long it takes")
    which.add_argument("--show", action="store_true", help="measure nothing, show what the file has")
    parser.add_argument(
        "--results", type=Path, metavar="FILE.json", help="the file (default: one beside the program's data)"
    )
    parser.add_argument("--again", action="store_true", help="measure also what the file has already")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.png",
        help="draw the result (with --show, the last one in the file)",
    )
    parser.add_argument("--markdown", action="store_true", help="print one table for a README")
    add_subject(parser)
    shared.add_loading(parser, model=False, policy=False)
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=check)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be, before minutes of loading. Raises EngineError."""
    _subject(arguments)
    if arguments.plot is not None:
        check_target(arguments.plot)
        check_can_draw()


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Measure what is missing, print, draw. An interrupted run keeps and shows what it has."""
    path = arguments.results or paths.data_dir() / "compare.json"
    store = CompareStore(path)
    if arguments.show:
        shown = store.all()
        if not shown:
            raise BenchError(f"There is nothing in {path} yet.", action="Run it without --show first.")
    else:
        store.save()  # a file that cannot be written is told before minutes of measuring
        asked = with_folder(_subject(arguments), arguments, console, cancel)
        shown = [_measure(arguments, asked, store, console, cancel)]
        console.note(f"Kept in {path}.")
    found = [each.to_dict() | {"left_out": each.left_out, "complete": each.complete} for each in shown]
    data = {"results": str(path), "comparisons": found}
    console.result(data, _lines(shown, as_markdown=arguments.markdown))
    if arguments.plot is not None and shown[-1].records:
        write_atomically(arguments.plot, draw(shown[-1]))
        console.note(f"{shown[-1].setup.model} in {shown[-1].setup.precision}: drawn to {arguments.plot}.")
    return 0


def _subject(arguments: argparse.Namespace) -> Subject:
    return subject(arguments, points.needed_context())


def _measure(
    arguments: argparse.Namespace, asked: Subject, store: CompareStore, console: Console, cancel: CancelToken
) -> Comparison:
    shared.quiet_torch()
    from engine.bench.compare_run import CompareRun, policies_of

    placements = asked.folder is None
    run = CompareRun(
        asked,
        lambda loaded: points.points(
            policies_of(loaded, POLICY_ORDER),
            full=arguments.full,
            placements=placements and loaded.plan.has_gpu,
        ),
        store,
        again=arguments.again,
        seconds=None if arguments.full else _QUICK_SECONDS,
        command=_command(arguments),
        progress=console.progress,
        cancel=cancel,
    )
    try:
        run.measure()
    except Cancelled:
        if run.comparison is None:
            raise
    for note in run.notes:
        console.note(note)
    assert run.comparison is not None
    return run.comparison


def _lines(shown: Sequence[Comparison], *, as_markdown: bool) -> tuple[str, ...]:
    lines: list[str] = []
    for comparison in shown:
        if lines:
            lines.append("")
        lines += markdown(comparison) if as_markdown else table(comparison)
    return tuple(lines)


def _command(arguments: argparse.Namespace) -> str:
    """The command that repeats the measurement, with what differs from the defaults."""
    words = ["fiddler", "bench", "compare", "--full" if arguments.full else "--quick"]
    defaults = arguments.parser.parse_args([])
    for name in _REPEATED:
        value = getattr(arguments, name)
        if value != getattr(defaults, name):
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                words.append(f"{value:g}" if isinstance(value, float) else str(value))
    return shlex.join(words)
