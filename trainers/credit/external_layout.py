"""From reply tokens back to where another trainer wants its numbers: reply after reply, or padded rows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyturn.trainers.credit.batch.turn_batch import FloatT, IntK, TurnBatch
from manyturn.trainers.credit.pipeline import Credit

Rows = Literal["episodes", "turns"]
OfTurn = TypeVar("OfTurn")


def by_reply(values_T: ArrayLike, batch: TurnBatch) -> list[list[FloatT]]:
    """Episode -> turn -> numbers of the reply's tokens, turns in time order.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], tokens=[[2, 1], [1]])
    >>> [[reply.tolist() for reply in episode] for episode in by_reply([0.1, 0.2, 0.3, 0.4], batch)]
    [[[0.1, 0.2], [0.3]], [[0.4]]]
    """
    return _by_episode(np.split(_one_a_token(values_T, batch), np.cumsum(batch.tokens_K)[:-1]), batch)


def on_mask(
    values_T: ArrayLike, batch: TurnBatch, mask: ArrayLike, rows: Rows = "episodes", fill: float = 0.0
) -> NDArray[np.float64]:
    """The numbers of reply tokens at the positions of a mask (B, T), in their order; ``fill`` elsewhere.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 0], tokens=[[2, 1], [1]])
    >>> on_mask([0.1, 0.2, 0.3, 0.4], batch, [[1, 1, 0, 1], [1, 0, 0, 0]])
    array([[0.1, 0.2, 0. , 0.3],
           [0.4, 0. , 0. , 0. ]])

    Args:
        values_T: such as ``earned.advantage_T`` or ``earned.targets_T``.
        mask: not 0 where the model said the token.
        rows: what a row of the mask is: an episode with all its replies, or a turn, in the order of the batch.

    Raises:
        ValueError: a row has more or fewer such positions than its replies have tokens, or a run of them contradicts
            the replies: it is a part of two, and one of these goes on in another run.
    """
    mask_BT = np.asarray(mask) != 0
    counts_B, order_T = _layout(batch, rows)
    what = rows.removesuffix("s")
    if mask_BT.ndim != 2:
        raise ValueError(f"the mask has {mask_BT.ndim} dimensions: give a row for each {what}")
    if len(mask_BT) != len(counts_B):
        raise ValueError(
            f"the mask has {len(mask_BT)} rows for {len(counts_B)} {rows}: rows = 'episodes' takes one for each of the "
            f"{len(batch.truncated_E)} episodes, rows = 'turns' one for each of the {len(batch.turn_K)} turns"
        )
    wrong_B = mask_BT.sum(1) != counts_B
    if wrong_B.any():
        row = int(wrong_B.argmax())
        raise ValueError(
            f"row {row} of the mask has {int(mask_BT[row].sum())} tokens of the model, but {what} {row} of the batch "
            f"has {int(counts_B[row])}: was the response cut after its tokens were counted?"
        )
    if rows == "episodes":
        for row, (said_T, replies) in enumerate(zip(mask_BT, _by_episode(batch.tokens_K.tolist(), batch), strict=True)):
            _check_runs(row, said_T, replies)
    placed_BT = np.full(mask_BT.shape, fill, np.float64)
    placed_BT[mask_BT] = _one_a_token(values_T, batch)[order_T]
    return placed_BT


def learnt_mask(earned: Credit, mask: ArrayLike, rows: Rows = "episodes") -> NDArray[Any]:
    """The mask (B, T) without the rows that nothing is learnt from: unscorable, or left out by the method.

    >>> from manyturn.trainers.credit.config import CreditConfig
    >>> from manyturn.trainers.credit.pipeline import credit
    >>> batch = TurnBatch.from_episodes([[1], [0], [0]], groups=[0, 0, 0], truncated=[False, False, True])
    >>> earned = credit(batch, CreditConfig(advantage="grpo", truncated="left_out"))
    >>> learnt_mask(earned, [[1, 0], [1, 0], [1, 0]]).tolist()
    [[1, 0], [1, 0], [0, 0]]
    """
    batch, mask_BT = earned.batch, np.array(mask)
    learnt_K = earned.kept_E[batch.episode_K] & batch.scorable_K
    first_K = batch.turn_K == 0
    learnt_B = learnt_K if rows == "turns" else learnt_K[first_K][np.argsort(batch.episode_K[first_K])]
    if mask_BT.ndim != 2 or len(mask_BT) != len(learnt_B):
        raise ValueError(f"the mask has shape {mask_BT.shape}: give a row for each of the {len(learnt_B)} {rows}")
    mask_BT[~learnt_B] = 0
    return mask_BT


def runs_of(mask: ArrayLike) -> list[tuple[int, int]]:
    """Begin and end of each run of ones in a row.

    >>> runs_of([0, 1, 1, 0, 1])
    [(1, 3), (4, 5)]
    """
    is_reply = np.asarray(mask) != 0
    if is_reply.ndim != 1:
        raise ValueError(f"mask has {is_reply.ndim} dimensions: give one row, with an entry for each position")
    edges = np.flatnonzero(np.diff(is_reply, prepend=False, append=False)).tolist()
    return [edge for number, edge in enumerate(pairwise(edges)) if number % 2 == 0]


def _by_episode(of_turns: Sequence[OfTurn], batch: TurnBatch) -> list[list[OfTurn]]:
    """Episode -> what there is of its turns, in time order."""
    episodes: list[list[OfTurn]] = [[] for _ in batch.truncated_E]
    for row in np.lexsort((batch.turn_K, batch.episode_K)):
        episodes[batch.episode_K[row]].append(of_turns[row])
    return episodes


def _check_runs(row: int, said_T: NDArray[np.bool_], replies: list[int]) -> None:
    """Raise ValueError where a reply and a run of the mask share tokens, and each has others of its own.

    A reply of several runs is possible, since tokens inside it may be masked; so is a run of several replies, with
    nothing between them. Both at one place are a number of tokens that is wrong.
    """
    runs = [end - begin for begin, end in runs_of(said_T)]
    edges, ends = {0, *np.cumsum(runs).tolist()}, np.cumsum([0, *replies]).tolist()
    for turn, (begin, end) in enumerate(pairwise(ends)):
        if not {begin, end} <= edges and any(begin < edge < end for edge in edges):
            raise ValueError(
                f"row {row} of the mask contradicts the replies of episode {row}: the {end - begin} tokens of turn "
                f"{turn} begin or end within a run of the mask and go over a gap; replies have {replies} tokens, and "
                f"runs {runs}: give the tokens of each reply as the mask has them, or give "
                "the mask to Rollout in their place"
            )


def _layout(batch: TurnBatch, rows: Rows) -> tuple[IntK, IntK]:
    """Reply tokens of each row, and the tokens' numbers (T) row after row."""
    if rows == "turns":
        return batch.tokens_K, np.arange(len(batch.turn_of_T))
    turn_T = batch.turn_of_T
    order_T = np.lexsort((batch.turn_K[turn_T], batch.episode_K[turn_T]))  # stable: tokens of a turn keep their order
    return np.bincount(batch.episode_K, batch.tokens_K).astype(np.int64), order_T


def _one_a_token(values_T: ArrayLike, batch: TurnBatch) -> FloatT:
    values_T = np.asarray(values_T, np.float64)
    if values_T.shape != (T := len(batch.turn_of_T),):
        raise ValueError(f"there are {values_T.shape} numbers for {T} reply tokens: give one for each")
    return values_T
