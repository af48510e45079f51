"""Speed and memory of the engine with one model, against the targets of the starter model.

    python benchmarks/speed.py --model starter [--json]

Each figure is the median of several runs in one process; run it on an otherwise idle computer. The targets
are for two AVX2 cores without a GPU; they mean nothing for another model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run from a checkout without installing it

from engine import starter  # noqa: E402
from engine.events import Finished, GenerationStats, TextDelta  # noqa: E402
from engine.options import LoadOptions  # noqa: E402
from engine.params import GenerationParams, Message, SamplingParams  # noqa: E402

# Figure: (target, whether more is better).
TARGETS = {
    "decode_tokens_per_second": (45.0, True),
    "prefill_tokens_per_second": (200.0, True),
    "load_seconds": (5.0, False),
    "first_token_seconds": (1.0, False),
    "resident_gb": (1.8, False),
}
SHORT_PROMPT = "What is the capital of France?"
GREEDY = SamplingParams(temperature=0)


def main() -> int:
    arguments = _arguments()
    import_started = time.perf_counter()
    from engine.runtime import Engine

    imported = time.perf_counter() - import_started
    folder = starter.ensure() if arguments.model == "starter" else Path(arguments.model)
    options = LoadOptions(threads=arguments.threads, device=arguments.device, policy=arguments.policy)
    loads = []
    for _ in range(arguments.loads - 1):
        started = time.perf_counter()
        Engine.load(folder, options).close()
        loads.append(time.perf_counter() - started)
    started = time.perf_counter()
    with Engine.load(folder, options) as engine:
        loads.append(time.perf_counter() - started)
        runs = [_measure(engine, number, arguments.tokens) for number in range(arguments.runs)]
        status = engine.status()
        result: dict[str, Any] = {
            "model": engine.info.name,
            "processor": engine.hardware.cpu.name,
            "isa": status.isa,
            "threads": status.threads,
            "device": status.device,
            "policy": status.policy,
            "calibrated": status.calibrated,
            "import_seconds": imported,
            "load_seconds": statistics.median(loads),
            "resident_gb": psutil.Process().memory_info().rss / 1e9,
        }
    result |= {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    result["spread"] = {
        name: [min(run[name] for run in runs), max(run[name] for run in runs)] for name in runs[0]
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        _print(result, with_targets=engine.info.is_starter)
    return 0


def _measure(engine: Any, number: int, tokens: int) -> dict[str, float]:
    """One round: a long answer, a prompt of exactly 128 new tokens, and the wait for a first word."""
    long = GenerationParams(sampling=GREEDY, max_tokens=tokens, ignore_eos=True)
    decode = _finish(engine.generate([Message("user", f"Tell me story {number} of the sea.")], long))
    prompt = _prompt_of(engine, 128, number)
    prefill = _finish(engine.continue_raw(prompt, GenerationParams(sampling=GREEDY, max_tokens=1)))
    assert prefill.prompt_tokens - prefill.reused_tokens in range(126, 131), prefill
    first = _first_text(engine)
    return {
        "decode_tokens_per_second": decode.tokens_per_second,
        "prefill_tokens_per_second": prefill.prefill_tokens_per_second,
        "first_token_seconds": first,
    }


def _first_text(engine: Any) -> float:
    """Seconds until the first piece of text of an answer (a model of random weights may never say any)."""
    started = time.perf_counter()
    answer = engine.generate([Message("user", SHORT_PROMPT)], GenerationParams(sampling=GREEDY, max_tokens=8))
    for event in answer:
        if isinstance(event, TextDelta | Finished):
            seconds = time.perf_counter() - started
            answer.close()
            return seconds
    raise AssertionError("a generation without an end")


def _prompt_of(engine: Any, tokens: int, number: int) -> str:
    """A text of `tokens` tokens that shares no beginning with other rounds'."""
    words = (ROOT / "assets/calibration/profile.txt").read_text(encoding="utf-8").split()
    low, high = 1, len(words)
    while low < high:  # the longest text that is not longer than asked for
        middle = (low + high + 1) // 2
        longer = engine.count_tokens(f"{number}. " + " ".join(words[:middle])) > tokens
        low, high = (low, middle - 1) if longer else (middle, high)
    text = f"{number}. " + " ".join(words[:low])
    while engine.count_tokens(text + " a") <= tokens:
        text += " a"
    return text


def _finish(events: Any) -> GenerationStats:
    stats = [event.stats for event in events if isinstance(event, Finished)]
    assert len(stats) == 1
    return stats[0]


def _print(result: dict[str, Any], *, with_targets: bool) -> None:
    head = ("model", "processor", "isa", "threads", "device", "policy")
    print(", ".join(f"{name} {result[name]}" for name in head))
    for name, (target, more) in TARGETS.items():
        value = result[name]
        line = f"{name:28} {value:8.2f}"
        if with_targets:
            met = value >= target if more else value <= target
            line += f"   target {'≥' if more else '≤'} {target:g}: {'met' if met else 'MISSED'}"
        print(line)
    print(f"{'import_seconds':28} {result['import_seconds']:8.2f}   (torch and its kin, beside load_seconds)")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="starter", help="“starter”, or the folder of a Mixtral model")
    parser.add_argument("--threads", type=int, help="default: the usable cores")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--policy", default="makespan")
    parser.add_argument("--tokens", type=int, default=128, help="length of the answer whose decode is timed")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loads", type=int, default=2, help="the first one may read from the disk")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
