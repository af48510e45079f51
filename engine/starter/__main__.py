"""`python -m engine.starter`: make the starter model from a script. Progress goes to stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine import starter
from engine.errors import EngineError
from engine.progress import Progress


def main(arguments: list[str] | None = None) -> int:
    """Make the model and print its folder; 0 if it is there in the end, else 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m engine.starter", description="Make the starter model.")
    parser.add_argument("--out", type=Path, help="folder to write (default: the program's own)")
    parser.add_argument(
        "--expert-noise",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="for tests: noise on each expert's weights, 0.02 is 2%%; needs --out",
    )
    options = parser.parse_args(arguments)
    if options.expert_noise and options.out is None:
        parser.error("--expert-noise needs --out: the program's own starter model has no noise")
    try:
        if options.out is None:
            folder = starter.ensure(_report)
        else:
            folder = options.out
            starter.make(folder, expert_noise=options.expert_noise, progress=_report)
    except EngineError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(file=sys.stderr)
    print(folder)
    return 0


def _report(step: Progress) -> None:
    share = f"{step.done / step.total:4.0%}" if step.total else ""
    print(f"\r{step.what} {share}\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
