"""GraphGPO: turns of one situation compared by how near the goal they led, along paths of all episodes of the task.

    A_k = v A^E_k + w A^S_k
    A^E_k = norm of the score s_k over the episodes of the task                          (as in GiGPO)
    A^S_k = norm of x_k - penalty_k over the turns of the task in k's situation
    measure = "distance": x_k = gamma^d(k')         measure = "progress": x_k = gamma^(d(k') - d(k) + 1)
    d: fewest turns to the goal on the task's graph of situations;  k': the situation that turn k led to
    norm(x) = x - mean (``mean_norm``) or (x - mean) / (std + eps) (``mean_std_norm``), ddof 1

Shapes: turns K -> advantage_K, with the levels "episode" and "turn" (K each, before v and w).
Source: Beyond Trajectory-Level Attribution, arXiv 2605.26684; numbers agree with the authors' code
(langfengQ/verl-agent, ``recipe/GraphGPO/core_graph.py``) under ``stats_over = "rows", singleton = "raw"``, which are
its settings.

Implementation:
1. The graph joins the turns of all scorable episodes of a task. A failure's turns are edges too: what leads towards the
   goal is worth more there as well.
2. An episode has reached the goal where its part "outcome" sums to ``goal`` or more; its last turn leads there, x = 1.
3. What no path leads from is one turn farther than the farthest that one does. Where no episode reached the goal, all
   turns are equal and this level is 0.
4. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.
5. Statistics are in float64; a group without spread gives exactly 0.

Differences: theirs pays 10 for the goal, so that their x and its penalty are ten times ours; with the standard
deviation only eps tells. They know the text after an episode's last turn and let a failure end in a situation of the
graph; here a failure ends nowhere. ``situation`` is ours: where the anchor forgets what decides, shortest paths run
through places that were never the same.

Watch: ``goal_reached``, the share of groups with a success: elsewhere this level is silent. ``mean_anchor_size`` near
1: situations hardly come back, and a path is an episode. It judges the nearest success, not the likely one: a turn that
led to a rare success and many failures counts as the success does.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics
from manyturn.trainers.credit.groups.situation_graph import distances, reached_goal
from manyturn.trainers.credit.groups.situations import situations
from manyturn.trainers.credit.groups.two_level_advantage import TwoLevelConfig, two_levels
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class GraphgpoConfig(TwoLevelConfig):
    compares_returns_only: ClassVar[bool] = True  # type: ignore[override]
    name: Literal["graphgpo"] = "graphgpo"
    episode_weight: float = Field(default=1.0, ge=0)
    """Weight v of the episode level."""
    measure: Annotated[Literal["distance", "progress"], OnlyWith("turn_weight")] = "distance"
    """Whether a turn is judged by how far the goal is after it, or by how much nearer it came."""
    gamma: Annotated[float, OnlyWith("turn_weight")] = Field(default=0.1, gt=0, lt=1)
    """What a turn of distance to the goal takes off."""
    goal: Annotated[float, OnlyWith("turn_weight")] = 1.0
    """Outcome from which an episode has reached the goal."""

    def named_parts(self) -> set[str]:
        return {OUTCOME} if self.turn_weight else set()


@ADVANTAGES.register(GraphgpoConfig)
def graphgpo(batch: TurnBatch, config: GraphgpoConfig) -> Advantage:
    """Advantage of every turn, with both levels.

    The failure's first turn led where the success was two turns from the goal, and is praised for it.

    >>> batch = TurnBatch.from_episodes([[0, 0, 1], [0, 0], [0]], [0] * 3, anchors=["abc", "ab", "a"])
    >>> graphgpo(batch, GraphgpoConfig(gamma=0.5)).levels["turn"].round(3)
    array([ 0.062,  0.219,  0.   ,  0.062, -0.219, -0.125])
    """
    situation_K = situations(batch, config)
    here_K, there_K = distances(batch, situation_K, config.goal)
    turns_K = there_K if config.measure == "distance" else there_K - here_K + 1
    judged_K = config.gamma**turns_K - batch.penalty_K
    levels = two_levels(batch, batch.score_K(), judged_K, situation_K, config).levels
    reached = len(np.unique(batch.group_K[reached_goal(batch, config.goal)])) / len(np.unique(batch.group_K))
    return Advantage(
        config.episode_weight * levels["episode"] + config.turn_weight * levels["turn"],
        levels,
        {**anchor_diagnostics(situation_K, batch.scorable_K), "goal_reached": reached},
    )
