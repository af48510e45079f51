"""`fiddler calibrate`: measure this computer with a model, and keep the result."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.profile import Probe
from engine.progress import CancelToken


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "calibrate",
        help="measure this computer with a model",
        description="Chooses the kernels, measures what experts cost here, reads a text to see which are "
        "chosen most, and keeps the result beside the program's data: plans and answers with the same model "
        "and precision use it. Takes a quarter of a minute for the starter model and a minute or two for a "
        "large one; what is measured before Ctrl-C is used if it is repeated within an hour. Other programs "
        "should rest meanwhile.",
    )
    shared.add_loading(parser)
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=shared.load_options)


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Load, measure (which saves the profile), print: each probe on stderr as it comes, then the summary."""
    from engine.calibration import calibrate  # these import torch: not before the arguments are understood
    from engine.runtime import Engine

    options = shared.load_options(arguments)
    folder = shared.model_folder(arguments, console, cancel)

    def on_probe(probe: Probe) -> None:
        console.note(probe.text())

    with Engine.load(folder, options, progress=console.progress, cancel=cancel) as engine:
        profile = calibrate(engine, progress=console.progress, cancel=cancel, on_probe=on_probe)
    console.result(profile.to_dict(), profile.summary())
    return 0
