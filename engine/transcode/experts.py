"""Open quantised models, take their experts over one by one, and say beforehand how well that goes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoint.reader import CONFIG_FILE
from engine.errors import CheckpointError
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.transcode.accuracy import LARGEST_ERROR, Accuracy, Transcoded
from engine.transcode.errors import RefusedError
from engine.transcode.gguf_source import GgufExperts, first_parts
from engine.transcode.packed_source import PackedExperts
from engine.transcode.report import TensorReport, TranscodeReport
from engine.transcode.source import MATRICES, ExpertSource, MatrixKey
from kernels.quantised import QuantisedMatrix

_THREADS = 4  # each holds one matrix, up to 300 MB for Mixtral's


@dataclass(frozen=True)
class TranscodedExpert:
    """One expert: w1 and w3 [intermediate, hidden], w2 [hidden, intermediate], all of one format."""

    layer: int
    expert: int
    w1: QuantisedMatrix
    w3: QuantisedMatrix
    w2: QuantisedMatrix
    accuracy: Accuracy


def open_experts(path: Path | str) -> ExpertSource:
    """Open a GGUF file, one part of a split one, or a folder with such a file or with an AWQ or GPTQ model.

    Raises:
        CheckpointError: it is none of these, is damaged, or its experts are not complete.
    """
    path = Path(path)
    if path.is_file() and path.suffix != ".safetensors":
        return GgufExperts(path)
    folder = path.parent if path.is_file() else path
    if not folder.is_dir():
        raise CheckpointError(
            "There is no such model.", why=f"Nothing is at {path}.", action="Choose another file or folder."
        )
    if (folder / CONFIG_FILE).exists():
        return PackedExperts(folder)
    models = first_parts(folder)
    if len(models) != 1:
        names = ", ".join(model.name for model in models[:5])
        raise CheckpointError(
            f"{folder.name} is not the folder of one quantised model.",
            why=f"It holds several: {names}." if models else f"It has no {CONFIG_FILE} and no GGUF file.",
            action="Choose one of these files."
            if models
            else "Choose a GGUF file, or an AWQ or GPTQ folder.",
        )
    return GgufExperts(models[0])


def transcode_experts(path: Path | str) -> Iterator[TranscodedExpert]:
    """Take over all experts, in the order of layers and experts; one is in memory at a time.

    Raises:
        CheckpointError: as `open_experts` and `read_expert`.
    """
    with open_experts(path) as source:
        for layer, expert, _ in (key for key in source.names if key.matrix == MATRICES[0]):
            yield read_expert(source, layer, expert)


def read_expert(source: ExpertSource, layer: int, expert: int) -> TranscodedExpert:
    """Take over one expert; several threads may do so at a time.

    Raises:
        RefusedError: a matrix cannot be taken over, or only with a larger error than is allowed.
        CheckpointError: the file is damaged, or the matrices do not belong together.
    """
    keys = [MatrixKey(layer, expert, matrix) for matrix in MATRICES]
    read = [_read_within_bound(source, key) for key in keys]
    w1, w3, w2 = (item.matrix for item in read)
    sizes = [(matrix.rows, matrix.cols) for matrix in (w1, w3, w2)]
    if sizes[1] != sizes[0] or sizes[2] != sizes[0][::-1]:
        raise CheckpointError(
            "The matrices of an expert do not fit together.",
            why=f"In layer {layer}, w1, w3 and w2 of expert {expert} are {sizes[0]}, {sizes[1]}, {sizes[2]}.",
            action="Download the model again; if it is a conversion, convert it again.",
        )
    if len({matrix.format for matrix in (w1, w3, w2)}) > 1:
        raise _mixed(source, keys)
    accuracy = Accuracy.combined(item.accuracy for item in read)
    return TranscodedExpert(layer, expert, w1, w3, w2, accuracy)


def inspect_experts(
    path: Path | str, on_progress: ProgressCallback = ignore_progress, cancel: CancelToken | None = None
) -> TranscodeReport:
    """Take over every expert matrix, measure its error, and keep none.

    Raises:
        CheckpointError: the model cannot be opened or is damaged. Tensors that cannot be taken over are in
            the report.
        Cancelled: `cancel` was raised.
    """
    cancel = cancel or CancelToken()
    with open_experts(path) as source:
        tensors: dict[str, list[MatrixKey]] = {}
        for key, name in source.names.items():
            tensors.setdefault(name, []).append(key)
        reports = []
        workers = min(_THREADS, os.cpu_count() or 1)
        with ThreadPoolExecutor(workers, thread_name_prefix="transcode") as pool:
            results = pool.map(lambda keys: _inspect(source, keys, cancel), tensors.values())
            try:
                for report in results:
                    reports.append(report)
                    on_progress(Progress("Comparing expert tensors", len(reports), len(tensors), "tensors"))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return TranscodeReport(source.path, tuple(reports))


def _inspect(source: ExpertSource, keys: list[MatrixKey], cancel: CancelToken) -> TensorReport:
    """The report on one tensor, which holds the matrices `keys`."""
    accuracies, refusal = [], None
    try:
        for key in keys:
            cancel.raise_if_cancelled()
            accuracies.append(source.read(key).accuracy)
    except RefusedError as error:
        refusal = error
    accuracy = None if refusal else Accuracy.combined(accuracies)
    if accuracy is not None and not accuracy.acceptable:
        refusal = _too_far()
    first = keys[0]
    return TensorReport(
        name=source.names[first],
        layer=first.layer,
        matrix=first.matrix,
        format_in=source.format_in(first),
        format_out=source.format_out(first),
        accuracy=accuracy,
        refused=refusal.reason if refusal else "",
        instead=refusal.action if refusal else "",
    )


def _read_within_bound(source: ExpertSource, key: MatrixKey) -> Transcoded:
    read = source.read(key)
    if not read.accuracy.acceptable:
        raise _too_far().of(source.names[key])
    return read


def _too_far() -> RefusedError:
    return RefusedError(
        "its scales or minimums differ so much between neighbours that a weight would change by more than "
        f"{LARGEST_ERROR:.2%} of the largest one beside it",
        "Use a GGUF file in Q4_K or Q8_0, which are taken over exactly.",
    )


def _mixed(source: ExpertSource, keys: list[MatrixKey]) -> RefusedError:
    formats = ", ".join(f"{key.matrix} in {source.format_in(key)}" for key in keys)
    return RefusedError(
        f"its matrices become different formats ({formats}), and an expert here has one",
        "Use a version whose experts are all in one type.",
        tensor=f"Expert {keys[0].expert} of layer {keys[0].layer}",
    )
