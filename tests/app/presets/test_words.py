"""What parameters mean, in words."""

from __future__ import annotations

import pytest

from app.presets.parameters import Parameters
from app.presets.words import answers_words, beams_words, overflow_words, recommended, values_words
from engine.params import GenerationParams, OverflowPolicy, SamplingParams


def test_what_the_model_recommends() -> None:
    greedy = GenerationParams(SamplingParams(temperature=0, top_k=40), stop_loops=True)
    assert recommended(greedy) == (
        "This model recommends: always the most likely word, at most 1,024 tokens, "
        "an answer that repeats itself is ended."
    )
    sampled = GenerationParams(SamplingParams(0.6, 40, 0.9, 0.05, 1.1), max_tokens=99)
    for part in ("temperature 0.6", "top-k 40", "top-p 0.9", "min-p 0.05", "penalty 1.1", "99 tokens"):
        assert part in recommended(sampled)
    assert "once it is loaded" in recommended(None)


def test_the_values_of_a_chat_in_short() -> None:
    parameters = Parameters(
        temperature=0.2, seed=5, max_tokens=9, answers=3, overflow=OverflowPolicy.DROP_OLDEST
    )
    words = values_words(parameters, None)
    for part in ("temperature 0.2", "seed 5", "at most 9 tokens", "3 answers", "oldest turns"):
        assert any(part in word for word in words), part
    assert values_words(Parameters(), None) == ["the model's own values"]
    assert values_words(Parameters(beams=4, temperature=1), GenerationParams())[0] == "4 beams"


@pytest.mark.parametrize("policy", OverflowPolicy)
def test_each_policy_has_its_consequence(policy: OverflowPolicy) -> None:
    others = [overflow_words(other) for other in OverflowPolicy if other is not policy]
    assert overflow_words(policy) not in others


def test_the_cost_of_beams_and_answers_is_said() -> None:
    assert "4 times" in beams_words(4)
    assert "off" in beams_words(1)
    assert "would be the same" in answers_words(3, 1, greedy=True)
    assert "slower than one" in answers_words(3, 1, greedy=False)
    assert "The best 2 answers" in answers_words(3, 2, greedy=True)
    assert "One answer" in answers_words(1, 4, greedy=False)
