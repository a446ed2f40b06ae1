"""Decisions: each action with the inner turns before it, as one turn of a batch without inner turns.

    reply     of a decision: the tokens of its inner turns, then those of its action
    reward    of a decision: the sum over its turns, where inner turns earn nothing unless a judge pays them
    all else  flags, anchor, columns: those of the action

So the return of an inner turn is that of the action after it, and no group, anchor or count of turns knows of inner
turns. Inner turns after an episode's last action belong to that action's decision.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch


class Decisions(NamedTuple):
    """The decisions of a batch of K turns.

    Attributes:
        batch: a turn for each decision.
        decision_K: number of each turn's decision.
        action_D: row of each decision's action.
    """

    batch: TurnBatch
    decision_K: IntK
    action_D: IntK

    @classmethod
    def of(cls, batch: TurnBatch) -> Self:
        """The decisions of a batch whose turns are in order, episode after episode.

        >>> inner = [[True, False, False], [False, True]]
        >>> batch = TurnBatch.from_episodes([[0, 0, 1], [1, 0]], [0, 0], tokens=[[5, 2, 2], [2, 4]], inner=inner)
        >>> decisions = Decisions.of(batch)
        >>> decisions.batch.reward_K, decisions.batch.tokens_K, decisions.decision_K
        (array([0., 1., 1.]), array([7, 2, 6]), array([0, 0, 1, 2, 2]))

        Raises:
            ValueError: turns are in another order, or an episode has inner turns alone.
        """
        order_K = np.lexsort((batch.turn_K, batch.episode_K))
        if (order_K != np.arange(len(order_K))).any():
            raise ValueError("a batch with inner turns has its turns in order, episode after episode: sort it")
        action_D = np.flatnonzero(~batch.inner_K)
        if lacking := set(range(len(batch.truncated_E))) - set(batch.episode_K[action_D].tolist()):
            raise ValueError(f"episode {min(lacking)} has inner turns and no action: leave it out of the batch")
        decision_K = np.cumsum(~batch.inner_K) - ~batch.inner_K
        last_E = np.searchsorted(batch.episode_K[action_D], np.arange(len(batch.truncated_E)), side="right") - 1
        decision_K = np.minimum(decision_K, last_E[batch.episode_K])
        return cls(_of_actions(batch, decision_K, action_D), decision_K, action_D)

    def summed(self, value_K: FloatK) -> FloatK:
        """A value of turns as one at the decision's action: the sum over the decision; 0 at inner turns."""
        sums_K = np.zeros(len(self.decision_K))
        sums_K[self.action_D] = np.bincount(self.decision_K, value_K, len(self.action_D))
        return sums_K

    def restored(self, batch: TurnBatch, decided: TurnBatch) -> TurnBatch:
        """The batch of all turns with the rewards and penalties that the decisions have now; 0 at inner turns."""

        def at_actions(value_D: FloatK) -> FloatK:
            value_K = np.zeros(len(self.decision_K))
            value_K[self.action_D] = value_D
            return value_K

        parts = {name: at_actions(part_D) for name, part_D in decided.parts.items()}
        return replace(batch, parts=parts, penalty_K=at_actions(decided.penalty_K))


def _of_actions(batch: TurnBatch, decision_K: IntK, action_D: IntK) -> TurnBatch:
    episode_D = batch.episode_K[action_D]
    return replace(
        batch,
        group_K=batch.group_K[action_D],
        episode_K=episode_D,
        turn_K=np.arange(len(action_D)) - np.searchsorted(episode_D, episode_D),
        parts={n: np.bincount(decision_K, part_K, len(action_D)) for n, part_K in batch.parts.items()},
        format_valid_K=batch.format_valid_K[action_D],
        understood_K=batch.understood_K[action_D],
        tokens_K=np.bincount(decision_K, batch.tokens_K, len(action_D)).astype(np.int64),
        anchor_K=None if batch.anchor_K is None else batch.anchor_K[action_D],
        anchor_text=None if batch.anchor_text is None else tuple(batch.anchor_text[row] for row in action_D.tolist()),
        penalty_K=batch.penalty_K[action_D],
        columns={name: column_K[action_D] for name, column_K in batch.columns.items()},
        inner_K=np.zeros(len(action_D), bool),
    )
