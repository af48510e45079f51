"""The status line's sentence about the loaded model."""

from app.model_control import where_it_runs
from tests.app.fakes import make_status


def test_a_precision_other_than_the_files_is_told() -> None:
    plain = where_it_runs(make_status())
    assert plain.startswith("Starter model · on the CPU (2 threads")
    assert "experts in" not in plain
    assert where_it_runs(make_status(precision="int8")) == f"{plain} · experts in 8 bits"


def test_a_graphics_card_and_a_precision_are_told_together() -> None:
    text = where_it_runs(make_status(has_gpu=True, device="RTX", precision="int4"))
    assert "on RTX" in text
    assert text.endswith("experts in 4 bits")
