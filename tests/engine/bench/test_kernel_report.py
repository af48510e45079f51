from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.bench.errors import BenchError
from engine.bench.kernel_report import KernelReport, read_report, report_from_dict
from engine.bench.kernel_table import table
from engine.errors import FileError
from tests.engine.bench.reports import round_report


def result(data: dict[str, Any], form: str, isa: str, tokens: int) -> dict[str, Any]:
    rows = [
        row for row in data["results"] if (row["format"], row["isa"], row["tokens"]) == (form, isa, tokens)
    ]
    assert len(rows) == 1
    found: dict[str, Any] = rows[0]
    return found


def test_figures_follow_from_bytes_times_and_the_best_reading() -> None:
    data = round_report().to_dict()
    assert data["read_gbs"] == 100
    row = result(data, "bf16", "avx2", 4)
    assert row["ms"] == pytest.approx(1.6)  # 80 MB at 50 GB/s
    assert row["median_ms"] == pytest.approx(3.2)
    assert row["gbs"] == pytest.approx(12.5)  # the weights are read once for all tokens
    assert row["percent_of_read"] == pytest.approx(12.5)
    assert row["tflops"] == pytest.approx(6e6 * 2 * 4 / 1.6e-3 / 1e12)  # 3 matrices of 2 M, 2 operations
    assert row["torch_ms"] is None
    assert [row["activations"] for row in data["results"]] == ["exact"] * 7 + ["8-bit"]
    assert result(data, "int4", "portable", 1)["torch_ms"] == pytest.approx(0.8)


def test_a_file_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    data = round_report().to_dict()
    path.write_text(json.dumps(data), "utf-8")
    again = read_report(path)
    assert {**again.to_dict(), "results": None} == {**data, "results": None}
    for found, row in zip(again.to_dict()["results"], data["results"], strict=True):
        assert found == {
            key: pytest.approx(value) if value.__class__ is float else value for key, value in row.items()
        }
    assert table(again) == table(round_report())


def without(*path: str | int) -> dict[str, Any]:
    """The report's data, less what `path` names."""
    data: Any = json.loads(json.dumps(round_report().to_dict()))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return dict(data)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        without("machine"),
        without("machine", "cpu"),
        without("shape", "hidden"),
        without("results", 0, "ms"),
        without("results", 0, "activations"),
        {
            **without("results"),
            "results": [{**round_report().to_dict()["results"][0], "activations": "4-bit"}],
        },
        without("left_out", 0, "seconds"),
        without("rotations", "int4", "count"),
        {**without("reads_gbs"), "reads_gbs": []},
        {**without("reads_gbs"), "reads_gbs": [0.0]},
        {**without("reads_gbs"), "reads_gbs": [10**400]},
        {**without("results"), "results": []},
        {**without("results"), "results": "none"},
    ],
)
def test_other_data_is_no_saved_run(data: Any) -> None:
    with pytest.raises(BenchError, match="saved run"):
        report_from_dict(data)


def test_files_that_are_missing_or_no_json_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"could not be read.*no such file"):
        read_report(tmp_path / "nowhere.json")
    with pytest.raises(FileError, match="could not be read"):
        read_report(tmp_path)
    for text in (b"\xff\xfe", b"[" * 100_000):
        (tmp_path / "text.json").write_bytes(text)
        with pytest.raises(BenchError, match="no JSON file"):
            read_report(tmp_path / "text.json")


def test_a_machine_that_reads_at_another_speed_at_the_end_is_told() -> None:
    report = round_report()
    assert "80.0 at the start, 99.0 at the end" in table(report)[1]
    report.reads = [97.0, 100.0, 101.0]
    assert not report.reads_differ
    assert "at the start" not in table(report)[1]


def test_the_table_has_a_row_for_each_figure_and_each_left_out() -> None:
    lines = table(round_report())
    rows = [line.split() for line in lines if line[:8] in ("bf16    ", "int4    ")]
    assert [row[:3] for row in rows] == [
        [form, isa, tokens]
        for form in ("bf16", "int4")
        for isa, counts in (("portable", "1 4 16"), ("avx2", "1 4"))
        for tokens in counts.split()
    ]
    assert rows[3][3:] == ["exact", "0.400", "0.800", "50.0", "50%", "0.030", "0.800", "2.0×"]
    assert " ".join(rows[2][3:]) == "left out: one call would take 3.2 s"
    assert [row[3] for row in rows[8:]] == ["exact", "8-bit"]
    assert any(line.startswith("int4: 6 experts of 4.8 MiB") and "caches may help" in line for line in lines)
    assert not any("Interrupted" in line for line in lines)


def test_reading_with_more_threads_than_the_kernels_is_told() -> None:
    report = round_report()
    assert table(report)[0] == "A processor, 4 threads, torch 2.0"
    report.machine["reading_threads"] = 5
    assert table(report)[0] == "A processor, 4 threads (5 for reading and for torch), torch 2.0"


def test_an_interrupted_run_says_so() -> None:
    report = KernelReport({"cpu": "A processor", "threads": 1, "torch": "2"}, 32, 32, 2, reads=[10.0])
    assert table(report)[-1].startswith("Interrupted")
