"""`fiddler generate`: one answer."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from engine.cli import arguments as shared
from engine.cli.console import Console
from engine.errors import GenerationError
from engine.events import Event, Finished, GenerationStats, Place, PromptProgress, TextDelta
from engine.params import GenerationParams, Message
from engine.progress import CancelToken, Progress

if TYPE_CHECKING:
    from engine.runtime import Engine

_SEARCH = ("length_penalty", "early_stopping")  # which only a beam search heeds
_DRAWING = ("temperature", "top_k", "top_p", "min_p", "seed")  # which it does not heed
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "generate",
        help="answer a prompt",
        description="Answers one prompt. Sampling is what the model's folder says unless set here.",
    )
    parser.add_argument("--prompt", required=True, help="the user's message; “-” reads it from stdin")
    parser.add_argument("--system", metavar="TEXT", help="a system message before it")
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it is, without a template")
    parser.add_argument(
        "--max-tokens",
        type=int,
        default=GenerationParams.max_tokens,
        metavar="N",
        help="of the answer, at most (default: %(default)s)",
    )
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before this text")
    parser.add_argument(
        "--no-loop-stop", action="store_true", help="do not end an answer that repeats itself"
    )
    sampling = parser.add_argument_group("sampling")
    how = sampling.add_mutually_exclusive_group()
    how.add_argument("--greedy", action="store_true", help="always the most likely token")
    how.add_argument("--temperature", type=float, metavar="T", help="0 is greedy")
    sampling.add_argument("--top-k", type=int, metavar="K", help="0 switches it off")
    sampling.add_argument("--top-p", type=float, metavar="P", help="1 switches it off")
    sampling.add_argument("--min-p", type=float, metavar="P", help="0 switches it off")
    sampling.add_argument("--repetition-penalty", type=float, metavar="R", help="1 switches it off")
    sampling.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
    search = parser.add_argument_group("beam search", "Continues several answers and takes the likeliest.")
    search.add_argument(
        "--beams", type=int, default=GenerationParams.beams, metavar="N", help="default: 1, off"
    )
    search.add_argument(
        "--length-penalty",
        type=float,
        default=GenerationParams.length_penalty,
        metavar="X",
        help="above 0 favours long answers, below 0 short ones (default: %(default)s)",
    )
    search.add_argument("--early-stopping", action="store_true", help="end at the first N finished answers")
    search.add_argument(
        "--answers",
        type=int,
        default=GenerationParams.answers,
        metavar="N",
        help="how many of the N to tell (default: %(default)s)",
    )
    shared.add_loading(parser)
    shared.add_output(parser)
    parser.set_defaults(parser=parser, run=run, check=check)


def check(arguments: argparse.Namespace) -> None:
    """Refuse impossible values before anything is loaded. Raises EngineError."""
    shared.load_options(arguments)
    params(arguments, GenerationParams())
    if arguments.raw and arguments.system is not None:
        raise GenerationError("--system has no place in raw text.", action="Leave --raw or --system out.")
    _check_search(arguments)


def _check_search(arguments: argparse.Namespace) -> None:
    """Refuse what would be ignored: options of a search without one, and of drawing tokens in one."""
    searching = arguments.beams > 1
    for name in _DRAWING if searching else _SEARCH:
        if getattr(arguments, name) != arguments.parser.get_default(name):
            option = f"--{name.replace('_', '-')}"
            if searching:
                raise GenerationError(f"A beam search draws no tokens: {option} has no place there.")
            raise GenerationError(f"{option} is for beam search.", action="Add --beams, 2 or more.")


def params(arguments: argparse.Namespace, defaults: GenerationParams) -> GenerationParams:
    """The model's default parameters with what the arguments set. Raises GenerationError."""
    given = {name: getattr(arguments, name) for name in _SAMPLING if getattr(arguments, name) is not None}
    if arguments.greedy:
        given["temperature"] = 0
    return GenerationParams(
        sampling=replace(defaults.sampling, **given),
        max_tokens=arguments.max_tokens,
        stop=tuple(arguments.stop),
        stop_loops=defaults.stop_loops and not arguments.no_loop_stop,
        beams=arguments.beams,
        length_penalty=arguments.length_penalty,
        early_stopping=arguments.early_stopping,
        answers=arguments.answers,
    )


def run(arguments: argparse.Namespace, console: Console, cancel: CancelToken) -> int:
    """Load, answer, tell the figures. An interrupted answer is printed as far as it got."""
    prompt = _stdin() if arguments.prompt == "-" else arguments.prompt
    options = shared.load_options(arguments)
    folder = shared.model_folder(arguments, console, cancel)
    cancel.raise_if_cancelled()
    console.progress(Progress("Starting the engine"))
    from engine.runtime import Engine  # imports torch: not before the arguments are understood

    with Engine.load(folder, options, progress=console.progress, cancel=cancel) as engine:
        for note in engine.notes:
            console.note(note)
        chosen = params(arguments, engine.default_params)
        if arguments.raw:
            events = engine.continue_raw(prompt, chosen, cancel)
        else:
            messages = [Message("user", prompt)]
            if arguments.system is not None:
                messages.insert(0, Message("system", arguments.system))
            events = engine.generate(messages, chosen, cancel)
        answer, finished = _follow(events, console)
        if console.json:
            console.result(_report(engine, chosen, answer, finished))
        elif not answer.endswith("\n"):
            console.write("\n")
        if not console.json:
            console.write(_others(finished))
        if finished.message:
            console.say(finished.message)
        console.note(_figures(finished.stats))
    return 0


def _stdin() -> str:
    """The text on stdin; bytes that are none become U+FFFD."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin.read()


def _follow(events: Iterator[Event], console: Console) -> tuple[str, Finished]:
    """Print the answer while it comes (not with --json); returns it and its last event."""
    answer: list[str] = []
    for event in events:
        if isinstance(event, TextDelta):
            answer.append(event.text)
            if not console.json:
                console.write(event.text)
        elif isinstance(event, PromptProgress):
            console.progress(Progress("Reading the prompt", event.done, event.total, "tokens"))
        elif isinstance(event, Finished):
            return "".join(answer), event
    raise AssertionError("a generation ends with Finished")


def _others(finished: Finished) -> str:
    """The other answers of a beam search, and how likely each was."""
    if len(finished.answers) < 2:
        return ""
    lines = [f"(score {finished.answers[0].score:.4f})"]
    lines += [f"\n{answer.text.rstrip()}\n(score {answer.score:.4f})" for answer in finished.answers[1:]]
    return "".join(f"{line}\n" for line in lines)


def _report(engine: Engine, chosen: GenerationParams, answer: str, finished: Finished) -> dict[str, Any]:
    stats = asdict(finished.stats)
    stats["hits"] = {place.name.lower(): finished.stats.hits.total(place) for place in Place}
    stats["time"] = {
        "steps": finished.stats.time.steps,
        "whole_microseconds": finished.stats.time.whole_microseconds,
        "microseconds": finished.stats.time.microseconds(),
    }
    return {
        "model": engine.info.name,
        "answer": answer,
        "answers": [asdict(found) for found in finished.answers],
        "finish_reason": str(finished.reason),
        "message": finished.message,
        "sampling": asdict(chosen.sampling),
        "beams": chosen.beams,
        "length_penalty": chosen.length_penalty,
        "early_stopping": chosen.early_stopping,
        "max_tokens": chosen.max_tokens,
        "stats": stats,
        "policy": engine.options.policy,
        "precision": engine.options.precision,
        "device": engine.plan.device_name,
        "notes": list(engine.notes),
    }


def _figures(stats: GenerationStats) -> str:
    seed = "" if stats.seed is None else f" Seed {stats.seed}."
    return (
        f"{stats.prompt_tokens} tokens read at {stats.prefill_tokens_per_second:.0f} tokens/s, first token "
        f"after {stats.time_to_first_token:.2f} s; {stats.generated_tokens} tokens written at "
        f"{stats.tokens_per_second:.1f} tokens/s.{seed}"
    )
