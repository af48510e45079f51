"""Grouping of a step's tokens by expert."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.experts.link import Groups


@given(
    st.integers(1, 6).flatmap(lambda k: st.lists(st.permutations(range(6)).map(lambda p: p[:k]), min_size=1))
)
def test_every_pair_is_in_its_experts_group(routing):
    ids = np.array(routing, dtype=np.int64)
    groups = Groups.of(ids, 6)
    for expert in range(6):
        mine = slice(groups.bounds[expert], groups.bounds[expert + 1])
        rows, ranks = np.nonzero(ids == expert)
        assert groups.counts[expert] == len(rows)
        assert groups.tokens[mine].tolist() == rows.tolist()
        assert groups.pairs[mine].tolist() == (rows * ids.shape[1] + ranks).tolist()
    assert groups.tokens.dtype == np.int32
