"""A tree that shares what differs, loses what is shared, or is cut where it costs more than it must."""

from itertools import chain, combinations

import numpy as np
from branching import steps
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.trainers.learn.passes.trie.packing import passes
from manyturn.trainers.learn.passes.trie.tree import Tree

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(np.array), min_size=1, max_size=7)


def prefixes(rows):
    return {tuple(row[:end].tolist()) for row in rows for end in range(1, len(row) + 1)}


@settings(deadline=None, max_examples=30)
@given(ROWS)
def test_every_different_prefix_is_one_node(rows):
    tree = Tree.of(rows, least=1)
    for row, place in zip(rows, tree.rows, strict=True):
        assert tree.ids[place].tolist() == row.tolist()
        assert tree.depth[place].tolist() == list(range(len(row)))
        assert tree.parent[place].tolist() == [-1, *place[:-1]]
    assert len(tree.ids) == len(prefixes(rows))


@settings(deadline=None, max_examples=30)
@given(ROWS, st.sampled_from([None, 1, 3]))
def test_a_run_sees_the_ancestors_of_its_nodes(rows, least):
    tree, seen = Tree.of(rows, least), list[int]()
    for run in tree.runs:
        path = [*run.before, *range(run.start, run.end)]
        assert tree.parent[path].tolist() == [-1, *path[:-1]]
        seen += range(run.start, run.end)
    assert seen == list(range(len(tree.ids)))


@settings(deadline=None, max_examples=30)
@given(ROWS)
def test_short_beginnings_are_not_shared(rows):
    alone, some = Tree.of(rows, least=None), Tree.of(rows, least=3)
    assert len(alone.ids) == sum(map(len, rows)) and not any(len(run.before) for run in alone.runs)
    for one, other in combinations(some.rows, 2):
        both = len(np.intersect1d(one, other))
        assert both in (0, len(one), len(other)) or both >= 3


def test_windows_whose_first_turn_is_gone_share_their_instructions_alone():
    """The turn stands at another position, behind another one."""
    rows = [np.array([1, 2, 10, 11]), np.array([1, 2, 10, 11, 20, 21]), np.array([1, 2, 20, 21])]
    tree = Tree.of(rows, least=1)
    assert len(tree.ids) == 8 and np.intersect1d(tree.rows[1], tree.rows[2]).tolist() == tree.rows[2][:2].tolist()


@settings(deadline=None, max_examples=30)
@given(ROWS, st.integers(1, 12), st.sampled_from([None, 1, 3]))
def test_passes_are_within_their_tokens_and_no_other_cut_computes_fewer(rows, most, least):
    def size(group):
        return len(Tree.of([rows[row] for row in group], least).ids)

    groups = passes(rows, most, least)
    order, found = list(chain(*groups)), list[int]()
    assert sorted(order) == list(range(len(rows)))
    assert all(size(group) <= most or len(group) == 1 for group in groups)
    for cuts in range(len(rows)):
        for places in combinations(range(1, len(rows)), cuts):
            parts = [order[a:b] for a, b in zip([0, *places], [*places, len(rows)], strict=True)]
            if all(size(part) <= most or len(part) == 1 for part in parts):
                found.append(sum(map(size, parts)))
    assert sum(map(size, groups)) == min(found)


@settings(deadline=None, max_examples=20)
@given(steps())
def test_a_step_in_one_pass_computes_each_token_once(samples):
    rows = [sample.ids for sample in samples]
    [group] = passes(rows, 10_000, least=1)
    assert len(Tree.of([rows[row] for row in group], 1).ids) == len(prefixes(rows))
