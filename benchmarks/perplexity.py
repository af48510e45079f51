"""Perplexity of a model with its experts in bf16, 8 and 4 bits, on the same text.

    python benchmarks/perplexity.py [--json] [--model starter] [--text FILE] [--chunk 128] [--isa NAME]
        [--off-grid]

Experts in 8 and 4 bits are read twice: with activations as they are, and with activations rounded to 8 bits
for every number of tokens. A calibration chooses rounding only for numbers for which it measures it to be
faster, so what it costs is at most this.

The text is by default that of the calibration (assets/calibration/profile.txt: prose, code, conversation).
No model was made with it: the starter's router is fitted to another one. `--chunk 1` reads token by token, as
decode does; larger chunks are prefill. Beside the perplexity stand its change against bf16 with the standard
error of that change (the same tokens are compared), and how often the likeliest next token is that of bf16.

The starter's experts come from a file of 4 bits (Q4_1), so most of their weights lie where 4 bits can say
them exactly, and it says little of what 4 bits cost a model of 16. `--off-grid` moves each weight by a random
part of that file's step, up to half of one either way: a model whose weights lie anywhere between the steps,
as those did that were rounded to them.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn import functional  # noqa: E402

from engine import starter  # noqa: E402
from engine.calibration.popularity import PROFILE_TEXT  # noqa: E402
from engine.events import Phase  # noqa: E402
from engine.generation.tokenizer import Tokenizer  # noqa: E402
from engine.models.loader import LoadedModel, load_model  # noqa: E402
from engine.options import DEVICES, LoadOptions  # noqa: E402
from engine.paths import asset  # noqa: E402
from engine.precision import PRECISIONS  # noqa: E402
from kernels.cpu import Isa  # noqa: E402
from kernels.formats import GROUP  # noqa: E402
from kernels.tuning import FormatTuning  # noqa: E402


@dataclass(frozen=True)
class Reading:
    """What a model says to a text: for each token but the first."""

    losses: torch.Tensor  # float64 [tokens - 1], negative log likelihoods
    likeliest: torch.Tensor  # int64 [tokens - 1]
    isa: str
    seconds: float

    @property
    def perplexity(self) -> float:
        """The exponential of the mean loss."""
        return math.exp(float(self.losses.mean()))


def main() -> int:
    arguments = _arguments()
    folder = starter.ensure() if arguments.model == "starter" else Path(arguments.model)
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.off_grid:
            folder = off_grid(folder, Path(scratch) / f"{folder.name}, off its grid")
        print(_report(folder, arguments))
    return 0


def off_grid(source: Path, target: Path) -> Path:
    """A copy of a model from a file of 4 bits with its experts' weights spread between the steps."""
    shutil.copytree(source, target)
    generator = torch.Generator().manual_seed(0)
    for file in target.glob("*.safetensors"):
        weights = load_file(file)
        for name, weight in weights.items():
            if ".experts." in name:
                groups = weight.float().view(-1, GROUP)
                step = (groups.amax(1, keepdim=True) - groups.amin(1, keepdim=True)) / 15
                moved = groups + step * (torch.rand(groups.shape, generator=generator) - 0.5)
                weights[name] = moved.view(weight.shape).to(weight.dtype)
        save_file(weights, file, metadata={"format": "pt"})
    return target


def _report(folder: Path, arguments: argparse.Namespace) -> str:
    text = (arguments.text or asset(PROFILE_TEXT)).read_text(encoding="utf-8")
    readings: dict[str, Reading] = {}
    for precision in arguments.precisions:
        for name, reading in read(folder, text, precision, arguments):
            readings[name] = reading
    base = readings[arguments.precisions[0]]
    report = {
        "model": folder.name,
        "text": str(arguments.text or PROFILE_TEXT),
        "tokens": len(base.losses),
        "chunk": arguments.chunk,
        "isa": base.isa,
        "against": arguments.precisions[0],
        "results": [_result(name, reading, base) for name, reading in readings.items()],
    }
    return json.dumps(report, indent=1) if arguments.json else "\n".join(_lines(report))


def read(
    folder: Path, text: str, precision: str, arguments: argparse.Namespace
) -> Iterator[tuple[str, Reading]]:
    """Load the model in a precision and let it read the text, with rounded activations, too, where it can."""
    options = LoadOptions(device=arguments.device, threads=arguments.threads, precision=precision)
    tokens = Tokenizer.load(folder).encode(text)
    with load_model(folder, options, isa=Isa(arguments.isa) if arguments.isa else None) as loaded:
        ids = torch.tensor(tokens[: loaded.model.config.max_position_embeddings])
        yield precision, _read(loaded, ids, arguments.chunk)
        pool, weight_format = loaded.pool, options.expert_format
        if pool.ways(weight_format).eight_bit:
            rounding = FormatTuning(0, many_eight_bit=True)  # all numbers of tokens are "many"
            pool.tuning = pool.tuning.with_format(weight_format, rounding)
            yield f"{precision}, activations of 8 bits", _read(loaded, ids, arguments.chunk)


def _read(loaded: LoadedModel, ids: torch.Tensor, chunk: int) -> Reading:
    cache = loaded.model.new_cache(len(ids))
    losses, likeliest = [], []
    started = time.perf_counter()
    for start in range(0, len(ids) - 1, chunk):
        part = ids[start : min(start + chunk, len(ids) - 1)]
        logits = loaded.model.forward(part, cache, logits="all", phase=Phase.PREFILL if chunk > 1 else None)
        assert logits is not None
        following = ids[start + 1 : start + 1 + len(part)]
        losses.append(functional.cross_entropy(logits.double(), following, reduction="none"))
        likeliest.append(logits.argmax(dim=1))
    seconds = time.perf_counter() - started
    return Reading(torch.cat(losses), torch.cat(likeliest), loaded.pool.isa.value, seconds)


def _result(name: str, reading: Reading, base: Reading) -> dict[str, Any]:
    difference = reading.losses - base.losses
    return {
        "precision": name,
        "perplexity": reading.perplexity,
        "change": reading.perplexity / base.perplexity - 1,
        "change_error": float(difference.std()) / math.sqrt(len(difference)),
        "same_likeliest": float((reading.likeliest == base.likeliest).double().mean()),
        "tokens_per_second": len(difference) / reading.seconds,
    }


def _lines(report: dict[str, Any]) -> list[str]:
    text, against = f"{report['model']} on {report['text']}", f"against {report['against']}"
    head = [
        f"{text}: {report['tokens']} tokens in chunks of {report['chunk']}",
        f"kernels: {report['isa']}",
        f"{'':28} perplexity   {against:17}  same likeliest token   tokens/s",
    ]
    rows = [
        f"{result['precision']:28} {result['perplexity']:11.3f} "
        f"{result['change']:+11.2%} ± {result['change_error']:6.2%} "
        f"{result['same_likeliest']:20.1%} {result['tokens_per_second']:13.1f}"
        for result in report["results"]
    ]
    return head + rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", default="starter", help="“starter” or a model's folder")
    parser.add_argument("--text", type=Path, help="another text")
    parser.add_argument("--chunk", type=int, default=128, help="tokens that are read at a time")
    parser.add_argument("--off-grid", action="store_true", help="spread the weights of a 4-bit source")
    parser.add_argument("--isa", choices=[isa.value for isa in Isa], help="of the kernels")
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
