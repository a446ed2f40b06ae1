"""Calibration reward (RLCR): a policy that says how sure it is loses by how far that is from the truth.

    r_K <- r_K - weight (q - O)^2        the Brier score, at the episode's last turn
    q: the confidence that the episode stated last, in 0 to 1;  O: its outcome, in 0 to 1;  (q - O)^2 = 1 without a q

Shapes: parts K -> one more part K, "calibration". The column "confidence" (K) is what each turn's reply states, NaN for
nothing.
Source: Beyond Binary Rewards: Training LMs to Reason About Their Uncertainty (RLCR), arXiv 2507.16806; as the authors'
code (``brier_reward``), which pays 1 - (q - O)^2, and 0 to a reply that states nothing: the same but for 1.

Implementation:
1. The Brier score is proper and bounded: in the mean a policy earns most by its likeliest answer, and by saying how
   likely that is. An unbounded score, such as the logarithm, would make a sure failure worth having.
2. What is stated is held to 0 and 1, as theirs is. The column "confidence" of a run has NaN for a text above 1, which
   counts as nothing stated.
3. An episode that states nothing earns the least, so that silence is no way out.
4. Figures: ``brier``, over scorable episodes that state something; ``stated``, their share.

Differences: theirs also asks for a fixed form of the reply, which an agent's reply format does here; and it gives a
broken form no outcome either. Their replies are answers of one turn; here the last turn pays for the episode.

Watch: ``stated`` should be near 1 soon; near 0 from the start, the policy does not know that it is to say it: tell it
in the instructions, or by demonstrations. ``brier`` at success x failure is no better than naming the rate of success.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.batch.episode_sums import last_K, last_known_K
from manyturn.trainers.credit.batch.reward_parts import outcome_E, with_part
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, Rewarded, StageConfig


class CalibrationConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"confidence"})
    adds: ClassVar[frozenset[str]] = frozenset({"calibration"})
    order: ClassVar[int | None] = 30
    name: Literal["calibration"] = "calibration"
    weight: float = Field(default=1.0, gt=0)
    """Weight of the Brier score; above 1 a rare success may not pay any more."""

    def named_parts(self) -> set[str]:
        return {OUTCOME}


@REWARDS.register(CalibrationConfig)
def calibration(batch: TurnBatch, config: CalibrationConfig) -> Rewarded:
    """Add what a confidence costs.

    >>> stated = {"confidence": [[float("nan"), 0.5], [0.5], [float("nan")]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0], [0]], groups=[0] * 3, columns=stated)
    >>> rewarded = calibration(batch, CalibrationConfig())
    >>> rewarded.batch.reward_K, rewarded.diagnostics["brier"]
    (array([ 0.  ,  0.75, -0.25, -1.  ]), 0.25)
    """
    stated_K = last_known_K(batch, batch.column("confidence"))
    missed_K = np.clip(stated_K, 0, 1) - outcome_E(batch)[batch.episode_K]
    ends_K = last_K(batch)
    cost_K = np.where(ends_K, np.where(np.isnan(stated_K), 1.0, missed_K**2), 0.0)
    counted_K = ends_K & batch.scorable_K
    told_K = counted_K & ~np.isnan(stated_K)
    figures = {
        "brier": float(cost_K[told_K].mean()) if told_K.any() else float("nan"),
        "stated": float(told_K.sum() / counted_K.sum()) if counted_K.any() else float("nan"),
    }
    return Rewarded(with_part(batch, "calibration", "calibration", -config.weight * cost_K), figures)
