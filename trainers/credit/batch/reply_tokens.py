"""Reply tokens: their order in time, which rewards they earn, and whitening over them."""

from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import FloatK, FloatT, IntK, TurnBatch

EPS_VARIANCE = 1e-8


class Replies(NamedTuple):
    """The S turns whose reply has tokens, in time order, episode after episode.

    Attributes:
        row_S: row of the turn in the batch.
        episode_S: its episode.
        place_S: its number among such turns of its episode.
        first_S, last_S: places of its first and last token among all T tokens.
    """

    row_S: IntK
    episode_S: IntK
    place_S: IntK
    first_S: IntK
    last_S: IntK


def replies(batch: TurnBatch) -> Replies:
    """The turns that said something.

    >>> batch = TurnBatch.from_episodes([[0, 0, 1], [1]], groups=[0, 0], tokens=[[2, 0, 1], [3]])
    >>> replies(batch).place_S, replies(batch).first_S, replies(batch).last_S
    (array([0, 1, 0]), array([0, 2, 3]), array([1, 2, 5]))
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    row_S = order_K[batch.tokens_K[order_K] > 0]
    episode_S = batch.episode_K[row_S]
    place_S = np.arange(len(row_S)) - np.searchsorted(episode_S, episode_S)
    last_S = np.cumsum(batch.tokens_K)[row_S] - 1
    return Replies(row_S, episode_S, place_S, last_S - batch.tokens_K[row_S] + 1, last_S)


def places_in_reply(batch: TurnBatch) -> IntK:
    """Number of each token (T) inside its reply.

    >>> places_in_reply(TurnBatch.from_episodes([[0, 1], [1]], groups=[0, 0], tokens=[[2, 0], [3]]))
    array([0, 1, 0, 1, 2])
    """
    first_K = np.cumsum(batch.tokens_K) - batch.tokens_K
    return np.arange(len(batch.turn_of_T)) - first_K[batch.turn_of_T]


def places_in_episode(batch: TurnBatch) -> IntK:
    """Number of each token (T) among the reply tokens of its episode, in time order.

    >>> batch = TurnBatch.from_episodes([[0, 1], [1]], groups=[0, 0], tokens=[[2, 1], [3]])
    >>> places_in_episode(batch)
    array([0, 1, 2, 0, 1, 2])
    """
    reply = replies(batch)
    tokens_S = batch.tokens_K[reply.row_S]
    before_S = np.cumsum(tokens_S) - tokens_S
    earlier_K = np.zeros(len(batch.turn_K), np.int64)
    earlier_K[reply.row_S] = before_S - before_S[np.arange(len(before_S)) - reply.place_S]
    return earlier_K[batch.turn_of_T] + places_in_reply(batch)


def token_rewards(batch: TurnBatch) -> FloatT:
    """Reward of each token (T): a turn's reward falls on the last token of its reply.

    What the environment gave for an empty reply falls on the token before it: some earlier token led there. Without
    one it falls on none. A token column "reward", where there is one, is added, such as -beta KL of each token.

    >>> token_rewards(TurnBatch.from_episodes([[1, 2, 4], [8, 16]], groups=[0, 0], tokens=[[2, 0, 1], [0, 1]]))
    array([ 0.,  3.,  4., 16.])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    reply = replies(batch)
    owner_K = np.cumsum(batch.tokens_K[order_K] > 0) - 1
    owned_K = owner_K >= 0
    owned_K[owned_K] = reply.episode_S[owner_K[owned_K]] == batch.episode_K[order_K[owned_K]]
    reward_T = np.array(batch.token_columns.get("reward", np.zeros(len(batch.turn_of_T))))
    np.add.at(reward_T, reply.last_S[owner_K[owned_K]], batch.reward_K[order_K[owned_K]])
    return reward_T


def turn_means(batch: TurnBatch, token_T: FloatT) -> FloatK:
    """Mean over the tokens of each turn's reply (K); 0 for an empty reply.

    >>> turn_means(TurnBatch.from_episodes([[0, 1]], groups=[0], tokens=[[2, 0]]), np.array([1.0, 2.0]))
    array([1.5, 0. ])
    """
    return np.bincount(batch.turn_of_T, token_T, len(batch.turn_K)) / np.maximum(batch.tokens_K, 1)


def whitened(value_P: FloatT, weight_P: FloatT | IntK) -> FloatT:
    """(value - mean) / sqrt(variance + 1e-8) with Bessel's correction; each value counts ``weight_P`` times.

    Exactly 0 where the weight is 0, and everywhere if all values that count are equal.

    >>> whitened(np.array([1.0, 3.0, np.nan]), np.array([2, 2, 0])).round(3)
    array([-0.866,  0.866,  0.   ])
    """
    counted_P = weight_P > 0
    values, weights = value_P[counted_P], weight_P[counted_P]
    out_P = np.zeros(len(value_P))
    if len(values) and values.min() < values.max():
        total = weights.sum()
        centred = values - (weights * values).sum() / total
        out_P[counted_P] = centred / np.sqrt((weights * centred**2).sum() / (total - 1) + EPS_VARIANCE)
    return out_P
