"""`fiddler bench model`: a whole model at full size, with random weights where there are no files."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.bench import model_request as requests
from engine.bench.errors import BenchError
from engine.bench.kernel_request import parse_tokens
from engine.bench.model_report import ModelReport
from engine.bench.model_table import table
from engine.bench.presets import PRESETS
from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.errors import Cancelled
from engine.progress import CancelToken

if TYPE_CHECKING:
    from engine.bench.model_run import ModelRun

_DEFAULTS = requests.ModelRequest(requests.Subject())


def add_to(benchmarks: Any) -> None:
    """Register the benchmark."""
    parser = benchmarks.add_parser(
        "model",
        help="read prompts and write tokens with a whole model, at full size",
        description="Loads a model, by default one of random weights with the sizes of Mixtral-8x7B, reads "
        "prompts and writes tokens, and holds the times against what this machine's bandwidths allow, which "
        "are measured in the same run. Other programs should rest meanwhile.",
    )
    parser.add_argument(
        "--prompts",
        default=",".join(map(str, _DEFAULTS.prompts)),
        metavar="LIST",
        help="lengths in tokens (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens", type=int, default=_DEFAULTS.decode, metavar="N", help="to write (default: %(default)s)"
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=_DEFAULTS.repeats,
        metavar="N",
        help="times each prompt is read (default: %(default)s)",
    )
    parser.add_argument(
        "--soak",
        type=int,
        default=_DEFAULTS.soak,
        metavar="TOKENS",
        help="then write about so many in 40 conversations, and watch memory and speed",
    )
    add_subject(parser)
    shared.add_loading(parser, model=False)
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=check)


def add_subject(parser: argparse.ArgumentParser) -> None:
    """Which model is measured, and how its experts are chosen."""
    group = parser.add_argument_group("model")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--preset",
        choices=PRESETS,
        default=requests.DEFAULT_PRESET,
        help="random weights of these sizes (default: %(default)s)",
    )
    which.add_argument("--model", metavar="MODEL", help="a real one: “starter”, or a folder")
    group.add_argument("--layers", type=int, metavar="N", help="of a preset (default: all)")
    group.add_argument(
        "--zipf", type=float, default=0.0, metavar="S", help="how uneven experts are chosen (0: all alike)"
    )
    group.add_argument(
        "--reuse",
        type=float,
        default=0.0,
        metavar="P",
        help="the chance that a token gets the experts of the one before (default: %(default)s)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of the routing")


def subject(arguments: argparse.Namespace, context: int) -> requests.Subject:
    """The model that is meant; the folder of “starter” is left to `with_folder`. Raises EngineError."""
    options = shared.load_options(arguments)
    if options.context_length is None:
        options = replace(options, context_length=context)
    elif options.context_length < context:
        raise BenchError(f"--context must hold what is measured: {context} tokens.")
    return requests.Subject(
        options=options,
        folder=None if arguments.model is None else shared.given_folder(arguments.model),
        preset=arguments.preset,
        layers=arguments.layers,
        zipf=arguments.zipf,
        reuse=arguments.reuse,
        seed=arguments.seed,
    )


def with_folder(
    asked: requests.Subject, arguments: argparse.Namespace, console: Console, cancel: CancelToken
) -> requests.Subject:
    """`asked`, with the folder of a real model if one was named; the starter model is made if need be."""
    if arguments.model is None:
        return asked
    return replace(asked, folder=shared.model_folder(arguments, console, cancel))


def request(arguments: argparse.Namespace) -> requests.ModelRequest:
    """What the arguments ask for. Raises EngineError for what cannot be."""
    prompts = parse_tokens(arguments.prompts)
    asked = subject(arguments, requests.context_of(prompts, arguments.tokens))
    return requests.ModelRequest(asked, prompts, arguments.tokens, arguments.repeats, arguments.soak)


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be, before minutes of loading. Raises EngineError."""
    request(arguments)


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Load, measure, print. An interrupted run is shown as far as it got."""
    asked = request(arguments)
    asked = replace(asked, subject=with_folder(asked.subject, arguments, console, cancel))
    report = _measure(start(asked, console, cancel))
    for note in report.notes:
        console.note(note)
    console.result(report.to_dict(), table(report))
    return 0


def start(asked: requests.ModelRequest, console: Console, cancel: CancelToken) -> ModelRun:
    """The run that will be measured."""
    shared.quiet_torch()
    from engine.bench.model_run import ModelRun

    return ModelRun(asked, progress=console.progress, cancel=cancel)


def _measure(run: ModelRun) -> ModelReport:
    """The whole report, or what there is after Ctrl-C. Raises Cancelled if that is nothing."""
    try:
        return run.measure()
    except Cancelled:
        if run.report is None or run.report.rates is None:
            raise
        return run.report
