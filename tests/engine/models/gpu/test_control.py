"""What the host tells a layer's graph, read back word by word as the kernels do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.gpu.control import Copy, control_words, write_control


@st.composite
def copies(draw):
    experts = draw(st.integers(1, 200))
    chosen = draw(st.sets(st.integers(0, experts - 1)))
    place, first = st.none() | st.integers(0, 300), st.integers(0, 448)
    return experts, [Copy(expert, draw(place), draw(first)) for expert in sorted(chosen)]


@given(copies(), st.booleans())
def test_every_expert_has_its_place_and_its_first_panel(told, results):
    experts, copied = told
    control = np.full(control_words(experts), 7, dtype=np.int32)  # of the layer before
    write_control(control, results=results, copies=copied)
    assert control[0] == results
    places, firsts = control[1 : 1 + experts], control[1 + experts :]
    assert set(np.flatnonzero(places != -1)) == {copy.expert for copy in copied}
    for copy in copied:
        if copy.place is None:
            assert places[copy.expert] < -1
        else:
            assert (places[copy.expert], firsts[copy.expert]) == (copy.place, copy.first)


@pytest.mark.parametrize(
    ("top_k", "sequences"), [(1, 16), (2, 16), (4, 16), (5, 8), (8, 8), (64, 1), (65, 0)]
)
def test_a_step_has_no_more_pairs_than_the_kernels_take(top_k, sequences):
    pytest.importorskip("triton")
    from engine.models.gpu.step import most_sequences  # not before: tests of kernels choose how to run them

    assert most_sequences(top_k) == sequences
