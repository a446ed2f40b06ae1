"""CAPO: every turn has the outcome, less what a judge finds wrong with that turn, compared over the turns of the task.

    R_k = whole O - process (1 - v_k) - penalty_k        A_k = (R_k - mean) / (std + eps)
    O: outcome of the episode;  v_k: verdict on turn k, 0 to 1;  over all scorable turns of the group, ddof 1

Shapes: turns K, with the part ``part`` -> advantage_K.
Source: CAPO, arXiv 2508.02298: R_t = r_v W_whole - 1[t in a wrong step] W_process for each token, from critiques of a
general model. Its authors' code is not public.

Implementation:
1. ``whole`` is above ``process``: the wrong turn of a success stays above the right turn of a failure, so that a
   judge's mistakes change how much is learnt and hardly what.
2. The mean of several verdicts is a share of a fault. Of votes, ``judge.vote = "intersection"`` is the paper's.
3. Rewards of turns other than verdicts and outcome are not read.
4. Group of one episode, or equal rewards throughout: 0. Every token of a turn gets the turn's advantage.

Differences: theirs are steps of one reply, marked by a model, and here turns of an episode. That mean and deviation are
over turns, and the weights, which keep the paper's order, are ours: unverified against theirs.

Watch: ``judge_agreement`` should not fall: then the policy has found what the judge likes. ``success`` below that of
GRPO at a rising ``parts/judge`` says the same.
"""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.batch.reward_parts import outcome_E, part_K
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import EPS, counted, group_statistics, standardised
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig


class CapoConfig(StageConfig):
    name: Literal["capo"] = "capo"
    compares_groups: ClassVar[bool] = True
    reads_verdicts: ClassVar[bool] = True

    part: str = "judge"
    """Part that holds the verdicts."""
    whole: float = Field(default=2.0, gt=0)
    """What the outcome weighs."""
    process: float = Field(default=1.0, gt=0)
    """What is taken from a turn with the verdict 0; below whole."""
    eps: float = Field(default=EPS, ge=0)
    """Added to the standard deviation."""

    @model_validator(mode="after")
    def _outcome_weighs_more(self) -> Self:
        if self.process >= self.whole:
            raise ValueError(
                f"process {self.process:g} is not below whole {self.whole:g}: a turn of a failure would be worth more "
                "than one of a success"
            )
        return self

    def named_parts(self) -> set[str]:
        return {self.part, OUTCOME}


@ADVANTAGES.register(CapoConfig)
def capo(batch: TurnBatch, config: CapoConfig) -> FloatK:
    """Advantage of every turn.

    >>> parts = {"outcome": [[0, 1], [0, 0]], "judge": [[1, 0], [1, 0]]}
    >>> capo(TurnBatch.from_episodes(parts, groups=[0, 0]), CapoConfig()).round(3)
    array([ 1.162,  0.387, -0.387, -1.162])
    """
    wrong_K = 1 - part_K(batch, config.part)
    reward_K = config.whole * outcome_E(batch)[batch.episode_K] - config.process * wrong_K - batch.penalty_K
    statistics = group_statistics(reward_K, batch.group_K, counted(batch, "rows"))
    members = group_statistics(reward_K, batch.group_K, counted(batch, "episodes"))
    return np.where(members.count_K > 1, standardised(reward_K, statistics, "zero", config.eps), 0.0)
