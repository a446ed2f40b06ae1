"""Facts of a turn's episode: its last turn, sums over it, and what was known before the turn."""

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch


def last_K(batch: TurnBatch) -> BoolK:
    """True for the last turn of each episode (K).

    >>> last_K(TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0]))
    array([False,  True,  True])
    """
    return batch.turn_K == np.bincount(batch.episode_K)[batch.episode_K] - 1


def group_E(batch: TurnBatch) -> IntK:
    """The task group of each episode (E).

    >>> group_E(TurnBatch.from_episodes([[0, 1], [0]], groups=["a", "b"]))
    array([0, 1])
    """
    groups = np.zeros(len(batch.truncated_E), np.int64)
    groups[batch.episode_K] = batch.group_K
    return groups


def episode_sum_K(batch: TurnBatch, value_K: FloatK) -> FloatK:
    """Sum over the turn's episode (K); NaN if one of its turns has NaN.

    >>> batch = TurnBatch.from_episodes([[2, 1], [4]], groups=[0, 0])
    >>> episode_sum_K(batch, batch.reward_K)
    array([3., 3., 4.])
    """
    return np.bincount(batch.episode_K, value_K)[batch.episode_K].astype(np.float64, copy=False)


def last_known_K(batch: TurnBatch, value_K: FloatK) -> FloatK:
    """The value at the turn (K) or, where that is NaN, at the nearest earlier turn that has one; NaN if none has.

    >>> batch = TurnBatch.from_episodes([[0, 0, 0], [0]], groups=[0, 0])
    >>> last_known_K(batch, np.array([0.5, np.nan, 0.75, np.nan]))
    array([0.5 , 0.5 , 0.75,  nan])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    known_K = ~np.isnan(value_K[order_K]) | (batch.turn_K[order_K] == 0)
    source_K = np.maximum.accumulate(np.where(known_K, np.arange(len(order_K)), 0))
    filled_K = np.empty(len(order_K))
    filled_K[order_K] = value_K[order_K][source_K]
    return filled_K


def before_K(batch: TurnBatch, value_K: FloatK, first_K: FloatK) -> FloatK:
    """The value at the turn before (K), and that of ``first_K`` at first turns.

    >>> batch = TurnBatch.from_episodes([[0, 0, 0], [0]], groups=[0, 0])
    >>> before_K(batch, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    array([0., 1., 2., 0.])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    earlier_K = np.empty(len(order_K))
    earlier_K[order_K] = np.roll(value_K[order_K], 1)
    return np.where(batch.turn_K == 0, first_K, earlier_K)
