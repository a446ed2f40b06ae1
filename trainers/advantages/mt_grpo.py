"""MT-GRPO: a turn's reward against the same turn of the other episodes, plus the outcome's advantage.

    A_k = sum_(j>=k) alpha^(j-k) N(r_j) + alpha^(last-k) N(o) - penalty_k        N(x) = (x - mean) / (std + eps), ddof 1
    N(r_j): among the turns of number j in the group;  N(o): among the group's outcomes;  alpha = ``gamma``

Shapes: turns K -> advantage_K, with the levels "turn" and "outcome" (K each); see ``turn_levels``.
Source: multi-turn GRPO, arXiv 2505.11821. No golden numbers exist.

Implementation:
1. o is the sum of the episode's reward part "outcome", r_j the sum of turn j's other parts.
2. A turn is compared with those episodes that got so far; a turn that no other reached gets 0.
3. A group without spread gives exactly 0, and so does a group of one episode.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.

Differences: the paper asks for as many turns in every episode of a group, which agents rarely give; hence 2. Its two
turns have a reward each; here any number of turns may. Without turn rewards and discount this is GRPO.

Watch: ``groups_without_signal`` should lie below that of GRPO, since turn rewards tell episodes of one outcome apart;
``return`` rising without ``success`` says that turns are rewarded for something else than the goal.
"""

from typing import Literal

from manyturn.trainers.advantages.anchors import equal_anchors
from manyturn.trainers.advantages.turn_levels import TurnLevelConfig, two_levels_to_go
from manyturn.trainers.stages import ADVANTAGES, Advantage
from manyturn.trainers.turn_batch import TurnBatch


class MtGrpoConfig(TurnLevelConfig):
    name: Literal["mt_grpo"] = "mt_grpo"


@ADVANTAGES.register(MtGrpoConfig)
def mt_grpo(batch: TurnBatch, config: MtGrpoConfig) -> Advantage:
    """Advantage of every turn.

    >>> parts = {"outcome": [[0, 1], [0, 0]], "progress": [[0.5, 0], [-0.5, 1]]}
    >>> mt_grpo(TurnBatch.from_episodes(parts, groups=[0, 0]), MtGrpoConfig(std=False, gamma=0.5)).total_K
    array([ 0.5,  0. , -0.5,  0. ])
    """
    return two_levels_to_go(batch, equal_anchors(batch.group_K, batch.turn_K), config)
