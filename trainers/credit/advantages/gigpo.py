"""GiGPO: episodes compared with episodes, and turns with turns taken in the same situation.

    A_k = A^E_k + w A^S_k
    A^E_k = norm of the score s_k over the episodes of the task
    A^S_k = norm of the turn's return G_k over k's anchor group;  G_k = sum_j gamma^(j-k) r_j - penalty_k
    norm(x) = x - mean (``mean_norm``) or (x - mean) / (std + eps) (``mean_std_norm``), ddof 1

Shapes: turns K -> advantage_K, with the levels "episode" and "turn" (K each, the latter before w).
Source: GiGPO, arXiv 2505.10978, equations 3 to 8; numbers agree with the authors' code (langfengQ/verl-agent,
``gigpo/core_gigpo.py``) under ``stats_over = "rows", singleton = "raw"``, which are its settings.

Implementation:
1. Returns are discounted from the environment's rewards first; penalties for invalid replies are taken off afterwards
   (``invalid_penalty``) and cost their own turn alone; then come the statistics.
2. Anchor groups are the turns of one task with equal anchors: the raw situation, without history or prompt text. With
   ``similarity`` a turn joins the first group whose first member's text is alike, in the order of the batch. With
   ``situation`` the turn's number or the anchors before it have to be equal too.
3. ``stats_over`` and ``singleton`` rule the episode level; at the turn level every turn counts, also several of one
   episode, and an anchor group of one gives 0.
4. Statistics are in float64; a group without spread gives exactly 0.
5. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended: no critic says what would
   come.

Differences: the paper takes the episode level over episodes, as here by default; the code takes it over turns, where
long episodes weigh more. The code pads batches with copies of random rows, which enter all statistics; left out. The
paper has no penalty and calls the std optional: their scripts divide by it in ALFWorld and search, not in WebShop and
Sokoban.

Watch: ``singleton_anchors`` near 1 or ``mean_anchor_size`` near 1: situations hardly ever come twice, the turn level is
silent, and this is GRPO; coarser anchors or similarity help. ``groups_without_signal``: the turn level may still
separate turns where returns are discounted.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics
from manyturn.trainers.credit.groups.situations import situations
from manyturn.trainers.credit.groups.two_level_advantage import TwoLevelConfig, two_levels
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

GAMMA = 0.95


class GigpoConfig(TwoLevelConfig):
    name: Literal["gigpo"] = "gigpo"
    gamma: Annotated[float, OnlyWith("turn_weight")] = Field(default=GAMMA, ge=0, le=1)
    """Discount per turn of the turns' returns."""

    @property
    def turn_discount(self) -> float | None:
        return self.gamma if self.turn_weight and self.similarity is None else None


@ADVANTAGES.register(GigpoConfig)
def gigpo(batch: TurnBatch, config: GigpoConfig) -> Advantage:
    """Advantage of every turn, with both levels and how large the anchor groups were.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], [0, 0], anchors=[["hall", "kitchen"], ["hall", "hall"]])
    >>> advantage = gigpo(batch, GigpoConfig(gamma=0.5))
    >>> advantage.levels["episode"], advantage.levels["turn"].round(3)
    (array([ 0.5,  0.5, -0.5, -0.5]), array([ 0.333,  0.   , -0.167, -0.167]))
    >>> advantage.diagnostics
    {'singleton_anchors': 0.25, 'mean_anchor_size': 2.0}
    """
    situation_K = situations(batch, config)
    advantage = two_levels(batch, batch.score_K(), batch.turn_return_K(config.gamma), situation_K, config)
    return advantage._replace(diagnostics=anchor_diagnostics(situation_K, batch.scorable_K))
