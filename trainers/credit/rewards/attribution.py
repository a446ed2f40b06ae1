"""Attribution (Sotopia-RL): the outcome is paid at the turns, to each as much as a judge says that it did for it.

    part:     r_k <- O v_k
    outcome:  r_k <- 0

    v_k: verdict on turn k, 0 to 1;  O: outcome of the episode

Shapes: parts K -> the verdicts' part and "outcome" changed (K each), all others as they are.
Source: Sotopia-RL, arXiv 2508.03905, and the authors' code (``calc_reward`` of sotopia-rl: attribution / 3
times the goal's score, with attributions from 0 to 3).

Implementation:
1. The sum over an episode is no outcome: it grows with the turns that the judge praises. Compare turns by it, as
   ``gigpo`` and ``gae`` do, with a discount.
2. In a failure with the outcome 0 every turn earns 0, whatever the judge says.
3. A verdict that is missing makes the episode unscorable.

Differences: in theirs the rewards of utterances train a reward model, and that trains the policy in dialogues of one
turn; here they are the rewards. Their attribution of -1, a reward of -1, and their dimensions besides the goal are left
out.

Watch: ``success`` falling while ``turns`` rises: turns are paid for being many; lower the discount.
"""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.trainers.credit.batch.reward_parts import note_parts, outcome_E, part_K
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class AttributionConfig(StageConfig):
    order: ClassVar[int | None] = 33
    name: Literal["attribution"] = "attribution"
    reads_verdicts: ClassVar[bool] = True
    empties: ClassVar[frozenset[str]] = frozenset({OUTCOME})
    part: str = "judge"
    """Part that holds the verdicts."""

    def named_parts(self) -> set[str]:
        return {self.part, OUTCOME}


@REWARDS.register(AttributionConfig, remembers=True)
def attribution(
    batch: TurnBatch, config: AttributionConfig, memory: dict[str, Any] | None
) -> tuple[TurnBatch, dict[str, Any]]:
    """Pay the outcome by verdicts.

    >>> parts = {"outcome": [[0, 0.9], [0, 0]], "judge": [[1, 0], [1, 1]]}
    >>> attribution(TurnBatch.from_episodes(parts, groups=[0, 0]), AttributionConfig(), None)[0].reward_K
    array([0.9, 0. , 0. , 0. ])
    """
    memory = note_parts("attribution", config.named_parts(), batch, memory)
    paid_K = outcome_E(batch)[batch.episode_K] * part_K(batch, config.part)
    left_K = np.where(np.isnan(paid_K), np.nan, 0.0)
    return replace(batch, parts={**batch.parts, config.part: paid_K, OUTCOME: left_K}), memory
