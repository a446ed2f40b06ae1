"""A rubric's score mixed with the outcome (C-GRPO): of two successes the one that meets more of the rubric earns more.

    outcome:  r_k <- (1 - share) r_k
    part:     r_k <- share O r_k / M        over = "successes": O the outcome of the episode;  over = "all": O = 1
    M: the largest sum of the part in an episode of the task; 1 without one above 0

Shapes: parts K -> the part and "outcome" changed (K each), all others as they are.
Source: Chaining the Evidence: Citation-aware Rubric Rewards, arXiv 2601.06021; numbers agree with the authors' code
(THUDM/CaRR, ``slime/rollout/sglang_rollout.py``), with ``over = "all"`` as it stands, and with ``over = "successes"``
under ``normalised = false``.

Implementation:
1. The part may be paid at any turn. Its sum over an episode is the rubric's score, and each turn keeps its share of it,
   which a method that separates turns can use.
2. With ``over = "successes"`` a failure earns nothing for what it met, so that an episode that collects evidence and
   never answers is not worth more than one that fails at once.
3. Outcomes are taken for shares of success, so give them in 0 to 1; a rubric's score is at least 0.
4. An unscorable episode is in no maximum, and stays unscorable.

Differences: in their code a success's score is not divided by M, though their runs ask for it: M is read and left
unused in that branch (``rubric_only_positive``). Theirs is one number at the end, of a model that judges; here it is
any part that the environment pays.

Watch: ``parts/NAME``, the score before it is mixed, should rise along with ``success``; if it rises alone with
``over = "all"``, the policy lives on evidence.
"""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.batch.episode_sums import episode_sum_K
from manyturn.trainers.credit.batch.reward_parts import note_parts, outcome_E, part_K
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class RubricConfig(StageConfig):
    order: ClassVar[int | None] = 31
    name: Literal["rubric"] = "rubric"
    part: str = "rubric"
    """Part that the rubric's score is."""
    share: float = Field(default=0.3, gt=0, lt=1)
    """Weight of the rubric; the outcome has the rest."""
    over: Literal["successes", "all"] = "successes"
    """Episodes that are paid for the rubric: as far as they succeed, or all."""
    normalised: bool = True
    """Divide by the best score of the task."""

    @field_validator("part")
    @classmethod
    def _is_no_outcome(cls, part: str) -> str:
        if part == OUTCOME:
            raise ValueError("rubric mixes a part with the outcome: name another part")
        return part

    def named_parts(self) -> set[str]:
        return {self.part, OUTCOME}


@REWARDS.register(RubricConfig, remembers=True)
def rubric(batch: TurnBatch, config: RubricConfig, memory: dict[str, Any] | None) -> tuple[TurnBatch, dict[str, Any]]:
    """Mix both parts.

    The last episode met all of the rubric, and failed.

    >>> parts = {"outcome": [[0, 1], [1], [0]], "rubric": [[1, 1], [1], [4]]}
    >>> batch = TurnBatch.from_episodes(parts, groups=[0, 0, 0])
    >>> rubric(batch, RubricConfig(share=0.5), None)[0].reward_K
    array([0.125, 0.625, 0.625, 0.   ])
    """
    memory = note_parts("rubric", config.named_parts(), batch, memory)
    score_K, outcome_K = part_K(batch, config.part), part_K(batch, OUTCOME)
    best_K = _best(batch, episode_sum_K(batch, score_K)) if config.normalised else 1.0
    weight_K = outcome_E(batch)[batch.episode_K] if config.over == "successes" else 1.0
    mixed = {config.part: config.share * weight_K * score_K / best_K, OUTCOME: (1 - config.share) * outcome_K}
    return replace(batch, parts={**batch.parts, **mixed}), memory


def _best(batch: TurnBatch, sum_K: FloatK) -> FloatK:
    """The largest score (K) of an episode of the turn's task; 1 if none is above 0."""
    groups, id_K = np.unique(batch.group_K, return_inverse=True)
    best = np.zeros(len(groups))
    np.maximum.at(best, id_K[batch.scorable_K], sum_K[batch.scorable_K])
    return np.where(best > 0, best, 1.0)[id_K]
