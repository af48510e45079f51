"""`fiddler transcode`: how well the experts of a quantised model could be taken over. Nothing is written."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.progress import CancelToken


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "transcode",
        help="show how well a quantised model's experts can be taken over",
        description=(
            "Reads every expert of a quantised model and compares it with what it would become here. Q4_K "
            "and Q8_0 are kept to the last bit; of Q4_0, Q4_1, AWQ and GPTQ the values are kept and the "
            "scales are rounded. Errors are shares of the largest of the up to 256 weights beside the one "
            "that changes. Nothing is written."
        ),
    )
    parser.add_argument(
        "path", metavar="FILE_OR_FOLDER", help="a GGUF file, or the folder of an AWQ or GPTQ model"
    )
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=lambda _: None)


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Compare and print. The status is 0 also when tensors are refused: the report says so."""
    from engine.transcode.experts import inspect_experts

    report = inspect_experts(shared.given_folder(arguments.path), console.progress, cancel)
    console.result(report.to_dict(), report.lines())
    return 0
