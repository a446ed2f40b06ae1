"""MT-GRPO: a turn's reward against the same turn of the other episodes, plus the outcome's advantage.

    A_k = sum_(j>=k) alpha^(j-k) N(r_j) + alpha^(last-k) N(o) - penalty_k        N(x) = (x - mean) / (std + eps), ddof 1
    N(r_j): among the j-th rewards of all episodes of the group, 0 after their end, and j runs past the end of k's own
    N(o): among the group's outcomes;  alpha = ``gamma``

Shapes: turns K -> advantage_K, with the levels "turn" and "outcome" (K each); see ``turn_levels``.
Source: multi-turn GRPO, arXiv 2505.11821. No golden numbers exist.

Implementation:
1. o is the sum of the episode's reward part "outcome", r_j the sum of turn j's other parts.
2. An episode that has ended earns 0 at later turns, and is compared there like the others, in its own sum too. Whether
   to go on is the policy's choice: a mean over those episodes alone that went on would take back what it is worth.
3. A group without spread gives exactly 0, and so does a group of one episode.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.

Differences: the paper asks for as many turns in every episode of a group, which agents rarely give; hence 2, which
changes nothing where lengths are equal. Its two turns have a reward each; here any number of turns may. Without std and
discount an episode's first turn gets what GRPO gives its full return; without turn rewards and discount this is GRPO.

Watch: ``groups_without_signal`` should be below that of GRPO, since turn rewards separate episodes of one outcome;
``return`` rising without ``success`` says that turns are rewarded for something else than the goal.
"""

from typing import Literal

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.turn_level_advantage import (
    TurnLevelConfig,
    turn_rewards,
    unbiased_to_go,
    with_outcome,
)
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class MtGrpoConfig(TurnLevelConfig):
    name: Literal["mt_grpo"] = "mt_grpo"


@ADVANTAGES.register(MtGrpoConfig)
def mt_grpo(batch: TurnBatch, config: MtGrpoConfig) -> Advantage:
    """Advantage of every turn.

    >>> parts = {"outcome": [[0, 1], [0, 0]], "progress": [[0.5, 0], [-0.5, 1]]}
    >>> mt_grpo(TurnBatch.from_episodes(parts, groups=[0, 0]), MtGrpoConfig(std=False, gamma=0.5)).total_K
    array([ 0.5,  0. , -0.5,  0. ])
    """
    return with_outcome(batch, unbiased_to_go(batch, turn_rewards(batch, config), config, same_turn=True), config)
