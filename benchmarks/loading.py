"""Times the loading of experts in every precision, beside plain reading and copying, and its peak of memory.

    python benchmarks/loading.py [--json] [--layers 1] [--experts 8] [--threads N] [--folder DIR]

A checkpoint of Mixtral-8x7B's expert shape with random weights is written to a temporary folder (2.8 GB for
each layer of 8 experts) and removed at the end. It is read once before anything is timed: the files are then
in the system's cache, as far as memory allows, and a disk's speed does not count. The arena is filled twice.
The first time the system also gives and clears its memory (a virtual machine's host may take much longer for
that than for everything else); the second time shows the loader alone. Each precision loads in a process of
its own, whose peak of resident memory is compared with the arena's size.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from engine.budget import LOADING_SCRATCH, LOADING_THREADS  # noqa: E402
from engine.checkpoint.reader import Checkpoint  # noqa: E402
from engine.experts.bank import ExpertBank, all_experts  # noqa: E402
from engine.known_models import MIXTRAL_8X7B  # noqa: E402
from engine.models.config import MixtralConfig  # noqa: E402
from engine.models.tensors import expert as expert_name  # noqa: E402
from engine.precision import PRECISIONS  # noqa: E402
from kernels.formats import WeightFormat  # noqa: E402
from kernels.rows import MATRICES, matrix_size  # noqa: E402
from kernels.shape import ExpertShape  # noqa: E402

_COPY_BYTES = 1 << 30


def main() -> int:
    arguments = _arguments()
    config = replace(MIXTRAL_8X7B, num_layers=arguments.layers, num_experts=arguments.experts)
    if arguments.load is not None:
        print(json.dumps(_load(arguments.folder, config, WeightFormat(arguments.load), arguments.threads)))
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        write_checkpoint(Path(folder), config)
        files = sorted(Path(folder).glob("*.safetensors"))
        read(files, arguments.threads)
        report: dict[str, Any] = {
            "machine": {"processor": platform.processor() or platform.machine(), "cpus": os.cpu_count()},
            "threads": arguments.threads,
            "checkpoint_gb": sum(file.stat().st_size for file in files) / 1e9,
            "plain_read_gbs": max(read(files, arguments.threads) for _ in range(arguments.repeat)),
            "copy_gbs": max(copy(arguments.threads) for _ in range(arguments.repeat)),
            "results": [],
        }
        for precision in PRECISIONS:
            runs = [_load_apart(folder, precision, arguments) for _ in range(arguments.repeat)]
            report["results"].append(max(runs, key=lambda run: run["gbs"]))
    print(json.dumps(report, indent=1) if arguments.json else "\n".join(_lines(report)))
    return 0


def write_checkpoint(folder: Path, config: MixtralConfig) -> None:
    """The experts of a model, a file a layer."""
    shape = ExpertShape(config.hidden_size, config.intermediate_size)
    weights = torch.randn(shape.hidden * shape.intermediate, generator=torch.Generator().manual_seed(0))
    numbers = (0.02 * weights).to(torch.bfloat16)
    del weights
    weight_map = {}
    for layer in range(config.num_layers):
        file = f"model-{layer:02}.safetensors"
        tensors = {
            expert_name(layer, expert, matrix): numbers.roll(7919 * (expert + layer)).view(
                matrix_size(matrix, shape)
            )
            for expert in range(config.num_experts)
            for matrix in MATRICES
        }
        save_file(tensors, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def read(files: list[Path], threads: int) -> float:
    """GB/s of reading the files in pieces of the loader's size, each thread into a buffer of its own."""
    pieces = iter([(file, at) for file in files for at in range(0, file.stat().st_size, LOADING_SCRATCH)])
    handles = {file: os.open(file, os.O_RDONLY) for file in files}
    lock, total = threading.Lock(), sum(file.stat().st_size for file in files)

    def work() -> None:
        buffer = memoryview(bytearray(LOADING_SCRATCH))
        while True:
            with lock:
                piece = next(pieces, None)
            if piece is None:
                return
            os.preadv(handles[piece[0]], [buffer], piece[1])

    seconds = _in_threads(work, threads)
    for handle in handles.values():
        os.close(handle)
    return total / seconds / 1e9


def copy(threads: int) -> float:
    """GB/s of copying memory to memory that was written before, all threads together."""
    source = torch.ones(_COPY_BYTES, dtype=torch.uint8)
    target = torch.zeros_like(source)
    parts = iter(list(zip(source.chunk(threads), target.chunk(threads), strict=True)))
    torch.set_num_threads(1)

    def work() -> None:
        mine, to = next(parts)
        to.copy_(mine)

    return _COPY_BYTES / _in_threads(work, threads) / 1e9


def _in_threads(work: Any, threads: int) -> float:
    """Seconds until all of them have ended."""
    running = [threading.Thread(target=work) for _ in range(threads)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - started


def _load(folder: Path, config: MixtralConfig, weight_format: WeightFormat, threads: int) -> dict[str, Any]:
    """Fill a bank in this process."""
    torch.set_num_threads(1)
    before = _peak()
    with Checkpoint(folder) as checkpoint:
        nbytes = sum(info.nbytes for info in checkpoint.tensors.values())
        started = time.perf_counter()
        bank = ExpertBank(config, weight_format)
        bank.fill(checkpoint, threads=threads)
        first = time.perf_counter() - started
        started, worked = time.perf_counter(), time.process_time()
        bank.fill(checkpoint, threads=threads)
        seconds, worked = time.perf_counter() - started, time.process_time() - worked
    arena, count = bank.arena.numel(), len(list(all_experts(config)))
    return {
        "precision": str(weight_format),
        "seconds": seconds,
        "first_gbs": nbytes / first / 1e9,
        "gbs": nbytes / seconds / 1e9,
        "seconds_per_expert": seconds / count,
        "core_seconds_per_expert": worked / count,
        "arena_gb": arena / 1e9,
        "beside_arena_mb": (_peak() - before - arena) / 1e6,
    }


def _load_apart(folder: str, precision: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same in a new process, so that its peak of memory is its own."""
    command = [
        *(sys.executable, __file__, "--load", precision, "--folder", folder),
        *("--layers", str(arguments.layers), "--experts", str(arguments.experts)),
        *("--threads", str(arguments.threads)),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _peak() -> int:
    """This process's largest resident memory so far, in bytes.

    Linux's own figure for it: getrusage's begins with that of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _lines(report: dict[str, Any]) -> list[str]:
    limit = min(report["plain_read_gbs"], report["copy_gbs"])
    head = [
        f"{report['checkpoint_gb']:.1f} GB of experts, {report['threads']} threads on "
        f"{report['machine']['cpus']} CPUs ({report['machine']['processor']})",
        f"plain reading {report['plain_read_gbs']:.1f} GB/s, copying {report['copy_gbs']:.1f} GB/s",
        "        first GB/s     GB/s  of the slower   s/expert   core s   arena GB   peak beside it MB",
    ]
    rows = [
        f"{result['precision']:6} {result['first_gbs']:11.2f} {result['gbs']:8.2f} "
        f"{result['gbs'] / limit:14.0%} "
        f"{result['seconds_per_expert']:10.3f} {result['core_seconds_per_expert']:8.3f} "
        f"{result['arena_gb']:10.2f} {result['beside_arena_mb']:19.0f}"
        for result in report["results"]
    ]
    return head + rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--threads", type=int, default=min(LOADING_THREADS, os.cpu_count() or 1))
    parser.add_argument("--repeat", type=int, default=3, help="of these, the fastest counts")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--load", choices=PRECISIONS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
