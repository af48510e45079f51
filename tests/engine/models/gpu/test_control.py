"""What the host tells a layer's graph, read back bit by bit as the kernel does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.gpu.control import control_words, write_control


@given(
    st.integers(1, 200).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1)))),
    st.booleans(),
)
def test_every_expert_has_a_bit_of_its_own(experts, results):
    count, streamed = experts
    control = np.full(control_words(count), -1, dtype=np.int64)  # of the layer before
    write_control(control, results=results, streamed=sorted(streamed))
    assert control[0] == results
    marked = {each for each in range(count) if int(control[1 + each // 64]) >> (each & 63) & 1}
    assert marked == streamed


def test_without_streamed_experts_nothing_is_marked():
    control = np.full(control_words(65), -1, dtype=np.int64)
    write_control(control, results=False)
    assert control.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("top_k", "sequences"), [(1, 16), (2, 16), (4, 16), (5, 8), (8, 8), (64, 1), (65, 0)]
)
def test_a_step_has_no_more_pairs_than_the_kernels_take(top_k, sequences):
    pytest.importorskip("triton")
    from engine.models.gpu.step import most_sequences  # not before: tests of kernels choose how to run them

    assert most_sequences(top_k) == sequences
