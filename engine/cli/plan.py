"""`fiddler plan`: what a model needs here, where its experts would go, and how fast it would be.

The same as the wizard's second page: the memory's speed is measured, and a model that is not here yet also
needs room on the disk.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from engine import known_models, starter
from engine.budget import download_requirements
from engine.checkpoint.inspect import ModelInfo, inspect_model
from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.hardware import detect
from engine.hardware.memory import detect_disk
from engine.paths import models_dir
from engine.plan import make_plan
from engine.profile_store import find_profile_for
from engine.progress import CancelToken
from engine.requirements import Requirements

MIXTRAL = "mixtral-8x7b"


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "plan",
        help="show what a model needs and how fast it would be",
        description=f"Plans without loading. MODEL may also be “{MIXTRAL}”, before it is downloaded.",
    )
    shared.add_loading(parser)
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=shared.load_options)


def run(arguments: argparse.Namespace, console: Console, _cancel: CancelToken) -> int:
    """Plan and print. The status is 0 also when the model does not fit: the plan says so."""
    options = shared.load_options(arguments)
    info, disk = _model(arguments.model)
    hardware = detect(measure_memory=True)
    if options.device == "cpu":
        hardware = hardware.without_gpu()
    profile, stale = None, ""
    if disk is None:
        found = find_profile_for(options, hardware, info)
        profile, stale = found.profile, found.stale
    plan = make_plan(hardware, info, options, profile)
    if stale:
        plan = replace(plan, notes=(*plan.notes, stale))
    if disk is not None:
        loading = plan.requirements
        plan = replace(plan, requirements=replace(loading, needs=(*loading.needs, *disk.needs)))
    console.result(plan.to_dict(), plan.lines())
    shortage = plan.requirements.error()
    if shortage is not None:
        console.error(shortage)
    return 0


def _model(name: str) -> tuple[ModelInfo, Requirements | None]:
    """The model that is meant, and what getting it takes; None if it is on this computer."""
    if name == shared.STARTER and not starter.is_ready():
        return known_models.starter(), starter.requirements()
    if name == shared.STARTER:
        return inspect_model(starter.starter_dir()), None
    if name.lower() == MIXTRAL:
        info = known_models.mixtral_8x7b()
        return info, download_requirements(detect_disk(models_dir()), info.name, info.total_bytes)
    return inspect_model(shared.given_folder(name)), None
