"""Opening models, and the report: what it says in words and as JSON, progress, and stopping."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import Cancelled, CheckpointError
from engine.progress import CancelToken, Progress
from engine.transcode.accuracy import Accuracy
from engine.transcode.experts import inspect_experts, open_experts
from engine.transcode.report import TensorReport, TranscodeReport
from engine.transcode.source import MATRICES
from kernels.formats import WeightFormat
from tests.engine.transcode.files import Q, expert_tensors, write_gguf


def test_what_is_no_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such model"):
        open_experts(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"no config\.json and no GGUF file"):
        open_experts(tmp_path)
    for name in ("a", "b"):
        write_gguf(tmp_path / f"{name}.gguf", expert_tensors(dict.fromkeys(MATRICES, Q.Q8_0)))
    with pytest.raises(CheckpointError, match=r"several: a\.gguf, b\.gguf"):
        open_experts(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CheckpointError, match="not a GGUF file"):
        open_experts(tmp_path / "text")


def test_progress_counts_tensors_and_cancelling_ends_it(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", expert_tensors(dict.fromkeys(MATRICES, Q.Q8_0), layers=3))
    seen: list[Progress] = []
    inspect_experts(path, seen.append)
    assert [(p.done, p.total) for p in seen] == [(i, 9) for i in range(1, 10)]
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        inspect_experts(path, cancel=cancel)


def tensor(layer: int, matrix: str, accuracy: Accuracy | None, refused: str = "") -> TensorReport:
    out = None if refused and accuracy is None else WeightFormat.INT4
    return TensorReport(
        f"t{layer}.{matrix}", layer, matrix, "Q4_0", out, accuracy, refused, "Use it." if refused else ""
    )


ROUNDED = Accuracy(0.002, 0.01, 10, exact=False)
EXACT = Accuracy.exact_copy(10)


def test_accuracies_are_combined_by_blocks() -> None:
    whole = Accuracy.combined([ROUNDED, Accuracy.exact_copy(30)])
    assert whole == Accuracy(0.002, 0.01, 40, exact=False)
    assert whole.mean == pytest.approx(0.01 / 40)
    assert Accuracy.combined([EXACT, EXACT]) == Accuracy.exact_copy(20)
    assert Accuracy().mean == 0
    assert not Accuracy(0.004, 0.004, 1, exact=False).acceptable


def test_the_table_puts_layers_of_a_kind_together() -> None:
    report = TranscodeReport(
        Path("m.gguf"),
        (*(tensor(i, "w1", ROUNDED) for i in (0, 1, 2, 5)), tensor(0, "w2", EXACT)),
    )
    assert report.lines() == (
        "matrix  layers  in the file  here  largest error  mean error",
        "w1      0–2, 5  Q4_0         int4  0.200%         0.100%",
        "w2      0       Q4_0         int4  exact          exact",
        "",
        "All experts can be taken over as int4: every value is kept, and scales are rounded.",
        "No weight changes by more than 0.200% of the largest of the up to 256 beside it.",
    )


def test_the_table_of_an_exact_file_says_so() -> None:
    report = TranscodeReport(Path("m.gguf"), (tensor(0, "w1", EXACT),))
    assert report.lines()[-1] == "All experts can be taken over as int4, exactly."


def test_refusals_are_explained_once_each() -> None:
    report = TranscodeReport(
        Path("m.gguf"),
        (tensor(0, "w1", EXACT), *(tensor(i, "w2", None, "its type is odd") for i in range(3))),
    )
    assert report.lines()[1:] == (
        "w1      0       Q4_0         int4  exact          exact",
        "w2      0–2     Q4_0         –     –              –           refused",
        "",
        "3 of 4 expert tensors cannot be taken over:",
        "- t0.w2: its type is odd.",
        "  Use it.",
    )
    many = TranscodeReport(Path("m"), tuple(tensor(i, "w1", None, f"reason {i}") for i in range(20)))
    assert many.lines()[-1] == "- and 12 more reasons; --json lists all."


def test_json_has_every_tensor() -> None:
    report = TranscodeReport(
        Path("m.gguf"), (tensor(0, "w1", ROUNDED), tensor(0, "w2", None, "its type is odd"))
    )
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["path"] == "m.gguf"
    assert (data["complete"], data["refused"], data["formats"]) == (False, 1, ["int4"])
    assert (data["largest_error"], data["mean_error"], data["exact"]) == (0.002, 0.001, False)
    assert data["tensors"][1] == {
        "name": "t0.w2",
        "layer": 0,
        "matrix": "w2",
        "format_in": "Q4_0",
        "format_out": None,
        "largest_error": None,
        "mean_error": None,
        "exact": False,
        "refused": "its type is odd",
        "instead": "Use it.",
    }


def test_json_claims_no_accuracy_where_nothing_can_be_taken_over() -> None:
    data = TranscodeReport(Path("m.gguf"), (tensor(0, "w1", None, "its type is odd"),)).to_dict()
    assert (data["largest_error"], data["mean_error"], data["exact"]) == (None, None, False)
