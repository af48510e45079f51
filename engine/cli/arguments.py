"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine import starter
from engine.cli.console import Console
from engine.options import DEVICES, POLICIES, LoadOptions, OptionError
from engine.precision import PRECISIONS
from engine.progress import CancelToken
from engine.units import GIB, format_bytes

STARTER = "starter"
_MAX_GIB = 1e6  # more than any computer has


def add_output(parser: argparse.ArgumentParser) -> None:
    """--json and --quiet, which every command has."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_loading(parser: argparse.ArgumentParser, *, model: bool = True, policy: bool = True) -> None:
    """What decides how a model is loaded; `model`: and which, unless the command says that otherwise.

    `policy`: and how its experts are run, unless the command tries all policies.
    """
    group = parser.add_argument_group("loading")
    if model:
        group.add_argument(
            "--model", required=True, metavar="MODEL", help="“starter”, or the folder of a Mixtral model"
        )
    if policy:
        group.add_argument(
            "--policy",
            choices=POLICIES,
            default=LoadOptions.policy,
            help="how experts are run that are not in graphics memory (default: %(default)s)",
        )
    else:
        parser.set_defaults(policy=LoadOptions.policy)
    group.add_argument("--device", choices=DEVICES, default=LoadOptions.device, help="default: %(default)s")
    group.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=LoadOptions.precision,
        help="what experts are held in: fewer bits need less memory and are faster, and cost some quality "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--exact-activations",
        action="store_true",
        help="never round activations to 8 bits, which calibration may find faster with int8 and int4",
    )
    group.add_argument("--vram-budget", type=float, metavar="GIB", help="graphics memory to use at most")
    group.add_argument("--ram-reserve", type=float, metavar="GIB", help="memory left to other programs")
    group.add_argument("--context", type=int, metavar="TOKENS", help="context length (default: up to 4096)")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: by the cores)")
    group.add_argument("--force", action="store_true", help="go on although memory looks short")


def load_options(arguments: argparse.Namespace) -> LoadOptions:
    """The options that the arguments mean. Raises EngineError for values that make no sense."""
    return LoadOptions(
        policy=arguments.policy,
        vram_budget=_bytes("--vram-budget", arguments.vram_budget),
        context_length=arguments.context,
        threads=arguments.threads,
        device=arguments.device,
        force=arguments.force,
        ram_reserve=_bytes("--ram-reserve", arguments.ram_reserve),
        precision=arguments.precision,
        exact_activations=arguments.exact_activations,
    )


def model_folder(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> Path:
    """The folder of the model that is meant; the starter model is made first if it is not there.

    Raises EngineError if that fails, Cancelled if it is interrupted.
    """
    if arguments.model != STARTER:
        return given_folder(arguments.model)
    if not starter.is_ready():
        needed = format_bytes(starter.needed_disk())
        console.note(f"The starter model is made first; this takes {needed} on the disk.")
    folder: Path = starter.ensure(console.progress, cancel, force=arguments.force)
    return folder


def given_folder(text: str) -> Path:
    """The folder that the user named; whole, so that a message about it says where it was looked for."""
    return Path(os.path.expanduser(text)).absolute()  # Path.expanduser() fails where there is no such user


def quiet_torch() -> None:
    """Before torch is imported, which reads this once: its idle threads must not take the pool's cores."""
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _bytes(name: str, gib: float | None) -> int | None:
    if gib is None:
        return None
    if not 0 <= gib <= _MAX_GIB:  # false for nan too
        raise OptionError(f"{name} cannot be {gib:g}.", action=f"Choose a value from 0 to {_MAX_GIB:g} GiB.")
    return int(gib * GIB)
