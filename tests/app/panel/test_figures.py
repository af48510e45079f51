from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answers import short_number, short_seconds
from app.chat.notices import describe, figures_line, figures_tip
from app.panel.figures import DASH, ExpertGrid, Share, forecast, shares, speed
from engine.accounting import TimeSplit
from engine.events import ExpertHits, GenerationStats, Phase, Place
from tests.app.fakes import make_status
from tests.app.figures import stats_after
from tests.app.panel.rows import answer_row


@given(st.lists(st.integers(0, 10_000), min_size=4, max_size=4))
def test_shares_are_the_engines_counts(counts: list[int]) -> None:
    hits = ExpertHits.zeros(2, 3)
    for place in Place:
        hits.counts[Phase.DECODE, 1, 2, place] = counts[place] // 2
        hits.counts[Phase.PREFILL, 0, 0, place] = counts[place] - counts[place] // 2
    parts = shares(hits)
    gpu, streamed, cpu, split = counts
    assert [part.count for part in parts] == [gpu, streamed, split, cpu]
    assert sum(part.fraction for part in parts) == pytest.approx(1 if sum(counts) else 0)


@pytest.mark.parametrize(
    ("fraction", "text"), [(0, "0%"), (0.001, "under 1%"), (0.005, "0%"), (0.434, "43%"), (1, "100%")]
)
def test_percentages(fraction: float, text: str) -> None:
    assert Share("x", 1, fraction, "cpu").percent == text


def test_the_map_counts_what_the_engine_counted() -> None:
    stats = stats_after(10, gpu=3, streamed=2)
    grid = ExpertGrid.of(make_status(), stats.hits)
    assert int(grid.uses.sum()) == int(stats.hits.counts.sum())
    assert grid.heat.max() == 1
    assert grid.heat.min() >= 0
    assert grid.places[0, 0, Place.GPU] == 3


def test_a_cell_is_described_in_words() -> None:
    residency = np.zeros((6, 8), dtype=np.bool_)
    residency[1, 2] = True
    hits = ExpertHits.zeros(6, 8)
    hits.counts[Phase.DECODE, 1, 2] = (3, 0, 0, 0)
    hits.counts[Phase.DECODE, 1, 4] = (0, 0, 1, 0)
    grid = ExpertGrid.of(make_status(residency=residency), hits)
    assert grid.describe_cell(1, 2) == (
        "Layer 2, expert 3: in GPU memory, chosen 3 times in this chat (75% of its layer) – "
        "GPU 3, copied 0, CPU 0"
    )
    hits.counts[Phase.PREFILL, 1, 4, Place.SPLIT] = 1
    cell = ExpertGrid.of(make_status(residency=residency), hits).describe_cell(1, 4)
    assert cell.endswith("– GPU 0, copied 0, CPU 1, shared by both 1")
    assert grid.describe_cell(0, 0) == "Layer 1, expert 1: in main memory, not chosen in this chat"
    assert grid.describe().startswith(
        "6 layers of 8 experts. 1 expert is in GPU memory. Chosen most: Layer 2"
    )


def test_figures_of_another_model_are_not_mixed_in() -> None:
    grid = ExpertGrid.of(make_status(), ExpertHits.zeros(2, 2))
    assert grid.uses.shape == (6, 8)
    assert not grid.uses.any()
    assert ExpertGrid.of(None, None).describe() == "No model is loaded."


def test_speeds_are_told_or_dashed() -> None:
    figures = speed(stats_after(20))
    assert (figures.now, figures.average, figures.first_token) == ("42.0", "40.0", "0.2 s")
    texts = [text.replace("\u00a0", " ").replace("\u2060", "") for text in (figures.prompt, figures.answer)]
    assert texts == ["12 tokens, 4 of them remembered · 0.2 s · 60.0/s", "20 tokens · 0.5 s"]
    assert " s" not in figures.prompt  # a number stays with its unit
    assert set(vars(speed(None)).values()) == {DASH}
    assert set(vars(speed(GenerationStats())).values()) == {DASH}


@pytest.mark.parametrize(
    ("error", "refits", "text"),
    [
        (None, 3, ""),
        (0.0, 0, "Layers take as long as planned."),
        (0.041, 0, "Layers are planned to take 4% longer than they do."),
        (
            -0.12,
            1,
            "Layers are planned to take 12% less time than they do. "
            "The measured speeds were corrected 1 time.",
        ),
    ],
)
def test_the_prediction_is_told_in_words(error: float | None, refits: int, text: str) -> None:
    assert forecast(GenerationStats(prediction_error=error, refits=refits)) == text
    assert forecast(None) == ""


@pytest.mark.parametrize(
    ("value", "text"), [(0.4, "0.40"), (0.96, "1.0"), (4.25, "4.2"), (99.9, "99.9"), (123.4, "123")]
)
def test_numbers_have_three_digits_at_most(value: float, text: str) -> None:
    assert short_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0852, "85 ms"), (0.0996, "0.1 s"), (1.44, "1.4 s"), (200, "3 min 20 s")]
)
def test_durations(value: float, text: str) -> None:
    assert short_seconds(value) == text


def test_the_line_below_an_answer() -> None:
    assert describe(stats_after(48)) == "48 tokens · 40.0 tokens/s · first after 0.2 s"
    assert describe(GenerationStats(generated_tokens=1)) == "1 token"
    assert describe(GenerationStats()) == ""


def test_the_tip_below_an_answer_tells_where_its_time_went() -> None:
    row = answer_row(1, tokens=48, tokens_per_second=40.0)
    assert figures_line(row) == "48 tokens · 40.0 tokens/s · first after 0.2 s"
    assert figures_tip(row) == f"{figures_line(row)}\n71% waiting for memory to reach the CPU's experts."
    assert figures_tip(answer_row(2, time=TimeSplit())) == figures_line(answer_row(2))
    assert figures_tip(replace(row, stats=None)) == ""
