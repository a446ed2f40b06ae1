"""ReNorm (PPR): what a judge says of a turn is paid as far as the outcome agrees.

    part:  r_k <- v_k + O - 1   before the last turn;  0 at the last
    "outcome" stays as it is

    v_k: verdict on turn k, 0 to 1;  O: outcome of the episode, 0 to 1

Shapes: parts K -> the verdicts' part changed (K), all others as they are.
Source: Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic Tasks, arXiv 2509.25598: outcome and
verdicts are centred at 1/2 and added at each step: the sum is at most 0 in a failure and at least 0 in a success.

Implementation:
1. A turn of a failure earns nothing above 0, however the judge likes it: a policy cannot live on verdicts.
2. The last turn is the one that the outcome judges, and has no verdict besides.
3. Outcomes are taken for shares of success, so give them in 0 to 1. A missing verdict makes the episode unscorable.

Differences: a reward model that was trained on principles judges in theirs, a rule or a general model here. What the
last step is paid is our reading: unverified against the authors' code. Their advantage is GAE; any that compares turns
reads this part.

Watch: ``parts/judge`` is before this stage. ``judge_agreement`` near 0.5: verdicts are noise as large as the outcome.
"""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.batch.episode_sums import last_K
from manyturn.trainers.credit.batch.reward_parts import note_parts, outcome_E, part_K
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class RenormConfig(StageConfig):
    order: ClassVar[int | None] = 32
    name: Literal["renorm"] = "renorm"
    reads_verdicts: ClassVar[bool] = True
    part: str = "judge"
    """Part that holds the verdicts."""

    def named_parts(self) -> set[str]:
        return {self.part, OUTCOME}


@REWARDS.register(RenormConfig, remembers=True)
def renorm(batch: TurnBatch, config: RenormConfig, memory: dict[str, Any] | None) -> tuple[TurnBatch, dict[str, Any]]:
    """Pay the verdicts.

    >>> parts = {"outcome": [[0, 0, 1], [0, 0, 0]], "judge": [[1, 0.25, 1], [1, 0.25, 1]]}
    >>> renorm(TurnBatch.from_episodes(parts, groups=[0, 0]), RenormConfig(), None)[0].parts["judge"]
    array([ 1.  ,  0.25,  0.  ,  0.  , -0.75,  0.  ])
    """
    memory = note_parts("renorm", config.named_parts(), batch, memory)
    outcomes_E, verdict_K = outcome_E(batch), part_K(batch, config.part)
    paid_K = np.where(last_K(batch), 0.0 * verdict_K, verdict_K + outcomes_E[batch.episode_K] - 1)
    return replace(batch, parts={**batch.parts, config.part: paid_K}), memory
