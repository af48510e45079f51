"""`fiddler hardware`: what this computer is."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.progress import CancelToken


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "hardware",
        help="show what this computer is",
        description="Shows the processor, memory, disk and graphics card as the program sees them.",
    )
    parser.add_argument("--measure", action="store_true", help="also measure how fast memory is read")
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=lambda _: None)


def run(arguments: argparse.Namespace, console: Console, _cancel: CancelToken) -> int:
    """Detect and print."""
    from engine.hardware import detect

    hardware = detect(measure_memory=arguments.measure)
    console.result(hardware.to_dict(), hardware.summary())
    return 0
