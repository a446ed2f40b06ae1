"""A row that two ranks compute, or none; ranks that wait for one that has more to do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.trainers.learn.passes.trie.tree import Tree
from manyturn.trainers.learn.ranks.row_shares import shares

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12).map(np.array), min_size=1, max_size=12)


@pytest.mark.parametrize("least", [None, 1, 4])
def test_every_row_has_one_rank_and_none_has_much_more_than_its_share(least):
    @settings(deadline=None, max_examples=60)
    @given(ROWS, st.integers(1, 5))
    def check(rows, ranks):
        found = shares(rows, ranks, least)
        assert len(found) == ranks and sorted(row for share in found for row in share) == list(range(len(rows)))
        sizes = [len(Tree.of([rows[row] for row in share], least).ids) if share else 0 for share in found]
        whole = len(Tree.of(rows, least).ids)
        # A cut computes what both sides begin with twice, which is shorter than the longest row.
        longest = max(map(len, rows))
        assert max(sizes) <= whole / ranks + 2 * longest

    check()


def test_rows_that_begin_alike_stay_together():
    rows = [np.array([task] * 30 + [member]) for member in range(4) for task in (1, 2)]
    assert [sorted(int(rows[row][0]) for row in share) for share in shares(rows, 2, 16)] == [[2] * 4, [1] * 4]
