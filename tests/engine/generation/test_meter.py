"""What a meter takes over from the model: how well its layers were foretold."""

from __future__ import annotations

from engine.drift import Drift, prediction_of
from engine.events import ExpertHits, Prediction
from engine.generation.meter import Meter
from tests.engine.costs import SERVER


def test_the_prediction_is_that_of_the_moment() -> None:
    known = Prediction()
    meter = Meter(lambda: 0.0, 0.0, lambda: ExpertHits.zeros(1, 1), 16, prediction=lambda: known)
    first = meter.stats(0, None)
    assert (first.prediction_error, first.refits) == (None, 0)
    known = Prediction(-0.05, 2)
    later = meter.stats(0, None)
    assert (later.prediction_error, later.refits) == (-0.05, 2)


def test_only_costs_that_are_followed_have_one() -> None:
    assert prediction_of(None) == prediction_of(SERVER) == prediction_of(Drift(SERVER)) == Prediction()
