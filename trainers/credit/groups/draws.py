"""Draws of branching rollouts: which turns were drawn from one and the same past, and what followed them.

A draw is a reply that the policy drew. A branch repeats the draws of its parent up to its fork: those are no draws of
its own. Siblings are draws from one past. First turns of a group are siblings, as all start from one reset.
"""

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import equal_anchors
from manyturn.trainers.credit.groups.situations import paired, previous_row

DRAWER = "drawer"  # the column with the member of the group that drew each turn


def draws(batch: TurnBatch) -> tuple[IntK, IntK, BoolK]:
    """Numbers (K) of the past that each turn was drawn from and of its draw, and whether its episode drew it.

    An episode draws its last turn itself, which tells its own number.

    >>> batch = TurnBatch.from_episodes([[0, 0], [0, 0]], [0, 0], columns={"drawer": [[0, 0], [0, 1]]})
    >>> draws(batch)
    (array([0, 1, 0, 1]), array([0, 1, 0, 2]), array([ True,  True, False,  True]))
    """
    drawer_K = batch.column(DRAWER).astype(np.int64)
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    ends_E = order_K[np.append(np.flatnonzero(np.diff(batch.episode_K[order_K])), len(order_K) - 1)]
    before_K = previous_row(batch)
    past_K = equal_anchors(batch.group_K, np.zeros(len(order_K), np.int64))
    draw_K = paired(past_K, drawer_K)
    for turn in range(1, int(batch.turn_K.max()) + 1):
        rows = np.flatnonzero(batch.turn_K == turn)
        # Numbers of pasts and draws of a turn begin above those of the turn before.
        past_K[rows] = len(order_K) * turn + draw_K[before_K[rows]] % len(order_K)
        draw_K[rows] = len(order_K) * turn + paired(past_K[rows], drawer_K[rows])
    past_K, draw_K = (equal_anchors(batch.group_K, number_K) for number_K in (past_K, draw_K))
    return past_K, draw_K, drawer_K == drawer_K[ends_E][batch.episode_K]


def draw_values(batch: TurnBatch, past_K: IntK, draw_K: IntK, gamma: float) -> FloatK:
    """Q (K) of each turn's draw; NaN where no scorable episode goes through it."""
    value_K, after_K = np.full(len(past_K), np.nan), np.full(len(past_K), np.nan)
    before_K = previous_row(batch)
    for turn in range(int(batch.turn_K.max()), -1, -1):
        rows = np.flatnonzero((batch.turn_K == turn) & batch.scorable_K)
        rest_K = np.where(np.isnan(after_K[rows]), 0.0, after_K[rows])
        value_K[rows] = batch.reward_K[rows] + gamma * rest_K
        # One value of each draw, and their mean for the draw before.
        _, first, number = np.unique(draw_K[rows], return_index=True, return_inverse=True)
        value_K[rows] = value_K[rows][first][number]
        if turn and len(rows):
            _, place = np.unique(past_K[rows][first], return_inverse=True)
            mean = np.bincount(place, value_K[rows][first]) / np.bincount(place)
            after_K[before_K[rows]] = mean[place][number]
    return value_K
