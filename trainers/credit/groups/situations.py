"""Situations: which turns of a task count as the same place to act, and which turn follows which.

A situation is the environment's anchor. Where the anchor forgets what decides, a method may add the turn's number (the
clock) or the anchors before it (the history): fewer turns are then compared, and those that are have more in common.
"""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import equal_anchors, similar_anchors
from manyturn.trainers.credit.stages import StageConfig

Situation = Literal["anchor", "clock", "history"]


class SituationConfig(StageConfig):
    """Base of the configurations of methods that compare turns taken in the same situation."""

    compares_groups: ClassVar[bool] = True

    situation: Situation = "anchor"
    """What two turns in the same situation share: their anchor, or with it the number of the turn (clock), or the
    anchors of the turns before (history)."""
    depth: Annotated[int, OnlyWith("situation", "history")] = Field(default=2, ge=1)
    """Turns before this one whose anchors belong to a history."""
    similarity: float | None = Field(default=None, gt=0, lt=1)
    """difflib ratio of their texts from which two anchors are the same; None: equal anchors only."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.similarity is None or env is None or env.has_anchor_text:
            return None
        return (
            f"credit.advantage.similarity compares the texts of situations, and those of {env.name} have none: "
            "override anchor_text() in the environment, or leave similarity out"
        )


def situations(batch: TurnBatch, config: SituationConfig) -> IntK:
    """Number (K) of each turn's situation, which no other task shares; -1 at unscorable turns, which have none.

    >>> batch = TurnBatch.from_episodes([[0, 0], [0, 0]], [0, 0], anchors=["ab", "bb"])
    >>> [situations(batch, SituationConfig(name="any", situation=kind)).tolist() for kind in ("anchor", "clock")]
    [[0, 1, 1, 1], [0, 1, 2, 1]]
    """
    anchor_K = anchor_groups(batch, config.similarity)
    if config.situation == "clock":
        return paired(anchor_K, batch.turn_K)
    return histories(batch, anchor_K, config.depth) if config.situation == "history" else anchor_K


def anchor_groups(batch: TurnBatch, similarity: float | None = None) -> IntK:
    """Number (K) of each turn's anchor group; -1 at unscorable turns, which belong to none."""
    scorable_K = batch.scorable_K
    anchor_K = np.full(len(scorable_K), -1, np.int64)
    if similarity is not None:
        if batch.anchor_text is None:
            raise ValueError("similarity needs anchor_text, which the batch lacks: give an anchor text for each turn")
        texts = [text for text, scorable in zip(batch.anchor_text, scorable_K, strict=True) if scorable]
        anchor_K[scorable_K] = similar_anchors(batch.group_K[scorable_K], texts, similarity)
    elif batch.anchor_K is None:
        raise ValueError(
            "turns in one situation are compared, for which the batch needs anchor_K: give an anchor for each turn, "
            "or take a method without them, such as grpo"
        )
    else:
        anchor_K[scorable_K] = equal_anchors(batch.group_K[scorable_K], batch.anchor_K[scorable_K])
    return anchor_K


def paired(situation_K: IntK, value_K: IntK) -> IntK:
    """Number (K) of each pair of situation and value; -1 where there is no situation.

    >>> paired(np.array([0, 0, 1, -1]), np.array([5, 5, 5, 5]))
    array([ 0,  0,  1, -1])
    """
    inside_K = situation_K >= 0
    pair_K = np.full(len(situation_K), -1, np.int64)
    pair_K[inside_K] = equal_anchors(situation_K[inside_K], value_K[inside_K])
    return pair_K


def histories(batch: TurnBatch, situation_K: IntK, depth: int) -> IntK:
    """Number (K) of each turn's situation with those of the ``depth`` turns before it, or of all that there are.

    >>> batch = TurnBatch.from_episodes([[0, 0], [0, 0], [0]], [0] * 3, anchors=["ab", "bb", "b"])
    >>> histories(batch, anchor_groups(batch), 1)
    array([0, 1, 2, 3, 2])
    """
    before_K, history_K = previous_row(batch), situation_K
    for _ in range(depth):
        earlier_K = np.where(before_K >= 0, history_K[before_K], -1)
        history_K = paired(situation_K, earlier_K)
    return history_K


def next_row(batch: TurnBatch) -> IntK:
    """Row (K) of the turn after each turn in its episode; -1 after an episode's last.

    >>> next_row(TurnBatch.from_episodes([[0, 0], [0]], [0, 0]))
    array([ 1, -1, -1])
    """
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    next_K = np.full(len(order_K), -1, np.int64)
    same = batch.episode_K[order_K[:-1]] == batch.episode_K[order_K[1:]]
    next_K[order_K[:-1][same]] = order_K[1:][same]
    return next_K


def previous_row(batch: TurnBatch) -> IntK:
    """Row (K) of the turn before each turn in its episode; -1 before an episode's first.

    >>> previous_row(TurnBatch.from_episodes([[0, 0], [0]], [0, 0]))
    array([-1,  0, -1])
    """
    next_K = next_row(batch)
    previous_K = np.full(len(next_K), -1, np.int64)
    inside_K = next_K >= 0
    previous_K[next_K[inside_K]] = np.flatnonzero(inside_K)
    return previous_K
