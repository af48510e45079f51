"""How well a fresh calibration predicts decode: predicted against measured time, with the fit's error.

    python benchmarks/calibration.py --model starter [--repeat 3] [--out results.jsonl]

Prints one JSON line per calibration; `--out` also appends it to a file. Run it on an otherwise idle computer.
The user's saved profiles are neither read nor written.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run from a checkout without installing it

from engine import starter  # noqa: E402
from engine.events import Finished  # noqa: E402
from engine.options import LoadOptions  # noqa: E402
from engine.params import GenerationParams, Message, SamplingParams  # noqa: E402
from engine.precision import PRECISIONS  # noqa: E402
from engine.profile import Probe  # noqa: E402

WITHIN = 0.25  # the accepted relative error of the prediction


def main() -> int:
    arguments = _arguments()
    from engine.calibration import calibrate
    from engine.runtime import Engine

    folder = starter.ensure() if arguments.model == "starter" else Path(arguments.model)
    options = LoadOptions(
        threads=arguments.threads,
        device=arguments.device,
        policy=arguments.policy,
        precision=arguments.precision,
        exact_activations=arguments.exact_activations,
    )

    def show(probe: Probe) -> None:
        print(f"{probe.text()} (± {probe.spread / 2:.0%})", file=sys.stderr)

    worst = 0.0
    with Engine.load(folder, options) as engine:
        for _ in range(arguments.repeat):
            with tempfile.TemporaryDirectory() as scratch:
                profile = calibrate(engine, on_probe=show, folder=Path(scratch))
            line = {
                "model": engine.info.name,
                "processor": engine.hardware.cpu.name,
                "isa": engine.status().isa,
                "threads": profile.threads,
                "device": engine.status().device,
                "policy": engine.options.policy,
                "experts_on_gpu": profile.expert_slots,
                "precision": profile.precision,
                "kernels": None if profile.kernels is None else profile.kernels.text(),
                "cpu_expert_ms": round(1e3 * profile.latency.cpu_lat(1), 4),
                "other_decode_ms": round(1e3 * profile.latency.other_decode, 3),
                "fit_error": round(profile.latency.fit_error, 4),
                "predicted_ms": round(1e3 * profile.predicted_decode, 3),
                "measured_ms": round(1e3 * profile.measured_decode, 3),
                "prediction_error": round(profile.prediction_error, 4),
                "answer_tokens_per_second": round(_answer_speed(engine), 2),
            }
            print(json.dumps(line, ensure_ascii=False))
            if arguments.out is not None:
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            worst = max(worst, abs(profile.prediction_error))
    print(f"Worst error {worst:.0%}, accepted {WITHIN:.0%}.", file=sys.stderr)
    return 0 if worst <= WITHIN else 1


def _answer_speed(engine: Any) -> float:
    """Decode speed of a real answer, with sampling and detokenizing, in tokens per second."""
    params = GenerationParams(sampling=SamplingParams(temperature=0), max_tokens=64, ignore_eos=True)
    events = list(engine.generate([Message("user", "Tell me about lighthouses.")], params))
    last = events[-1]
    assert isinstance(last, Finished)
    return last.stats.tokens_per_second


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="starter", help="“starter”, or the folder of a Mixtral model")
    parser.add_argument("--threads", type=int, help="default: the usable cores")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--policy", default="makespan")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16")
    parser.add_argument("--exact-activations", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
