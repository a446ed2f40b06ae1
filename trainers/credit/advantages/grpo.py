"""GRPO and Dr.GRPO: an episode's score against the other episodes of its task.

    A_k = (s_k - mean_g s) / (std_g s + eps)        s_k: score of turn k's episode, g: its group, ddof 1
    Dr.GRPO (``std = false``):  A_k = s_k - mean_g s

Shapes: turns K -> advantage_K.
Source: GRPO, arXiv 2402.03300, section 4.1.2; Dr.GRPO, arXiv 2503.20783, section 3.2. Numbers agree with
``compute_grpo_outcome_advantage`` of verl and, with several turns per episode, of verl-agent under ``stats_over =
"rows", singleton = "raw"``.

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. An episode counts once in its group's statistics (``stats_over``), however many turns it has.
3. Statistics are in float64. A group without spread gives exactly 0, not the rounding error divided by eps.
4. A group of one gives 0 (``singleton``). Truncated episodes count as they ended: no critic says what would come.

Differences: the paper has one reply an episode. verl-agent counts every turn (rows), so that long episodes weigh more,
and gives a group of one its raw score. Dr.GRPO's constant in place of the length belongs to the objective
(``seq-mean-token-sum-norm``).

Watch: ``groups_without_signal`` near 1 leaves nothing to learn from: tasks are too easy or too hard for groups of this
size. ``advantage_std`` shrinks with it, and without std with the spread of returns too.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    FlatStd,
    GroupConfig,
    deviation,
    score_statistics,
    standardised,
)
from manyturn.trainers.credit.stages import ADVANTAGES


class GrpoConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["grpo"] = "grpo"
    std: bool = True
    """Divide by the group's standard deviation; without it the method is Dr.GRPO."""
    eps: Annotated[float, OnlyWith("std")] = Field(default=EPS, ge=0)
    """Added to the standard deviation."""
    flat_std: Annotated[FlatStd, OnlyWith("std")] = "one"
    """Standard deviation of a group without spread. With one, its members get exactly 0. With zero, which is for parity
    with the authors' code, what deviates by a penalty alone is divided by eps: advantages of a hundred thousand."""


@ADVANTAGES.register(GrpoConfig)
def grpo(batch: TurnBatch, config: GrpoConfig) -> FloatK:
    """Advantage of every turn.

    >>> batch = TurnBatch.from_episodes([[0, 3], [0], [0]], groups=[0, 0, 0])
    >>> grpo(batch, GrpoConfig(std=False))
    array([ 2.,  2., -1., -1.])
    >>> grpo(batch, GrpoConfig()).round(3)
    array([ 1.155,  1.155, -0.577, -0.577])
    """
    score_K = batch.score_K()
    statistics = score_statistics(batch, batch.group_K, config.stats_over)
    if config.std:
        return standardised(score_K, statistics, config.singleton, config.eps, config.flat_std)
    return deviation(score_K, statistics, config.singleton)
