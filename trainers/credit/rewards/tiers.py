"""Sweet spot learning (SSL): on top of the outcome an episode earns by the tier of progress that it reached.

    R = C + alpha S(p)        S(p): value of the highest tier whose progress is at most p, 0 below the first

Shapes: parts K -> one more part K, "tier". p is the progress (column "progress", in [0, 1]).
Source: SSL: Sweet Spot Learning for Differentiated Guidance in Agentic Optimization, arXiv 2601.22491.

Implementation:
1. p is the progress after the episode's last turn, or at the last turn where it is known. The best progress on the way
   is left out: an agent would be paid after undoing it.
2. With paid = "turns" a turn earns what it moves S, up or down, and the sum over the episode is the same.
3. ``alpha`` must stay below ``gap``, what success earns more than failure: then no episode that failed earns more than
   one that succeeded, and the order of episodes by outcome is kept.
4. Tiers instead of progress itself keep noise of the measure out of the comparison within a group.

Differences: there is no public code. Increments that grow towards the goal are the paper's; tiers and alpha are ours.
Paying turns is ours too, for methods that compare turns.

Watch: ``groups_without_signal`` should be below that of the outcome alone: that is what tiers are for. ``return`` is
of the environment's rewards and does not show what tiers paid; ``success`` must rise with ``advantage_std`` above 0.
"""

from itertools import pairwise
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.trainers.credit.batch.episode_sums import before_K, last_K, last_known_K
from manyturn.trainers.credit.batch.reward_parts import with_part
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class TiersConfig(StageConfig):
    order: ClassVar[int | None] = 14
    name: Literal["tiers"] = "tiers"
    needs: ClassVar[frozenset[str]] = frozenset({"progress"})
    adds: ClassVar[frozenset[str]] = frozenset({"tier"})
    tiers: tuple[tuple[float, float], ...] = Field(
        default=((0.25, 0.1), (0.5, 0.3), (0.75, 0.6), (1.0, 1.0)), min_length=1
    )
    """Pairs of the progress at which a tier begins and its value; both increase, within 0 to 1."""
    alpha: float = Field(default=0.5, gt=0)
    """What the tiers weigh."""
    gap: float = Field(default=1.0, gt=0)
    """Least difference between the outcomes of success and failure."""
    paid: Literal["end", "turns"] = "end"
    """At the last turn, or at each turn that moves the tier."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for (begin, value), (later, more) in pairwise(((0.0, 0.0), *self.tiers)):
            if not (begin < later <= 1 and value < more <= 1):
                raise ValueError(f"tiers: ({later}, {more}) must be above ({begin}, {value}) and within (1, 1)")
        if self.alpha >= self.gap:
            raise ValueError(f"alpha {self.alpha} is not below gap {self.gap}: failure could earn more than success")
        return self


@REWARDS.register(TiersConfig)
def tiers(batch: TurnBatch, config: TiersConfig) -> TurnBatch:
    """Add what the tiers earn.

    >>> batch = TurnBatch.from_episodes([[0, 0, 0]], groups=[0], columns={"progress": [[0.5, 0.8, 0.1]]})
    >>> tiers(batch, TiersConfig(paid="turns")).reward_K.round(3)
    array([ 0.15,  0.15, -0.3 ])
    """
    progress_K = last_known_K(batch, batch.column("progress"))
    if np.isnan(progress_K).all():
        raise ValueError(
            "tiers: no turn of the batch has progress: override progress() in the environment, or leave tiers out"
        )
    value_K = tier_value(progress_K, config)
    if config.paid == "turns":
        earned_K = value_K - before_K(batch, value_K, np.zeros(len(value_K)))
    else:
        earned_K = np.where(last_K(batch), value_K, 0.0)
    return with_part(batch, "tiers", "tier", config.alpha * earned_K)


def tier_value(progress_K: FloatK, config: TiersConfig) -> FloatK:
    """S of the formula (K); 0 where the progress is NaN.

    >>> tier_value(np.array([0.0, 0.25, 0.74, 1.0, np.nan]), TiersConfig())
    array([0. , 0.1, 0.3, 1. , 0. ])
    """
    begins, values = zip(*config.tiers, strict=True)
    tier_K = np.searchsorted(begins, np.nan_to_num(progress_K, nan=-1.0), side="right")
    return np.array([0.0, *values])[tier_K]
