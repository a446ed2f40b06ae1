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
   ``similarity`` a turn joins the first group whose first member's text is alike, in the order of the batch.
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

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from manyturn.envs.contract.facts import EnvFacts
from manyturn.envs.contract.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import anchor_diagnostics, equal_anchors, similar_anchors
from manyturn.trainers.credit.groups.group_statistics import (
    EPS,
    FlatStd,
    GroupConfig,
    GroupStatistics,
    Singleton,
    deviation,
    group_statistics,
    score_statistics,
    standardised,
)
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

GAMMA = 0.95


class GigpoConfig(GroupConfig):
    name: Literal["gigpo"] = "gigpo"
    mode: Literal["mean_norm", "mean_std_norm"] = "mean_norm"
    """Whether both levels are divided by their standard deviation."""
    turn_weight: float = Field(default=1.0, ge=0)
    """Weight w of the turn level."""
    gamma: Annotated[float, OnlyWith("turn_weight")] = Field(default=GAMMA, ge=0, le=1)
    """Discount per turn of the turns' returns."""
    similarity: Annotated[float | None, OnlyWith("turn_weight")] = Field(default=None, gt=0, lt=1)
    """difflib ratio of their texts from which two situations are the same; None: equal anchors only."""
    eps: Annotated[float, OnlyWith("mode", "mean_std_norm")] = Field(default=EPS, ge=0)
    """Added to the standard deviations."""
    flat_std: Annotated[FlatStd, OnlyWith("mode", "mean_std_norm")] = "one"
    """Standard deviation of a group without spread. With one, its members get exactly 0. With zero, which is for parity
    with the authors' code, what deviates by a penalty alone is divided by eps: advantages of a hundred thousand."""

    @property
    def compares_returns_only(self) -> bool:  # type: ignore[override]
        return self.turn_weight == 0

    @property
    def turn_discount(self) -> float | None:
        return self.gamma if self.turn_weight and self.similarity is None else None

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.similarity is None or env is None or env.has_anchor_text:
            return None
        return (
            f"credit.advantage.similarity compares the texts of situations, and those of {env.name} have none: "
            "override anchor_text() in the environment, or leave similarity out"
        )


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
    cluster_K = anchor_groups(batch, config.similarity)
    advantage = two_levels(batch, batch.score_K(), batch.turn_return_K(config.gamma), cluster_K, config)
    return advantage._replace(diagnostics=anchor_diagnostics(cluster_K, batch.scorable_K))


def anchor_groups(batch: TurnBatch, similarity: float | None = None) -> IntK:
    """Number (K) of each turn's anchor group; -1 at unscorable turns, which belong to none."""
    known_K = batch.scorable_K
    cluster_K = np.full(len(known_K), -1, np.int64)
    if similarity is not None:
        if batch.anchor_text is None:
            raise ValueError("similarity needs anchor_text, which the batch lacks: give an anchor text for each turn")
        texts = [text for text, has_anchor in zip(batch.anchor_text, known_K, strict=True) if has_anchor]
        cluster_K[known_K] = similar_anchors(batch.group_K[known_K], texts, similarity)
    elif batch.anchor_K is None:
        raise ValueError(
            "gigpo compares turns in the same situation, for which it needs anchor_K: give an anchor for each turn, or "
            "take a method without them, such as grpo"
        )
    else:
        cluster_K[known_K] = equal_anchors(batch.group_K[known_K], batch.anchor_K[known_K])
    return cluster_K


def two_levels(batch: TurnBatch, score_K: FloatK, return_K: FloatK, cluster_K: IntK, config: GigpoConfig) -> Advantage:
    """Both levels from scores, turns' returns and anchor groups (K each), NaN where unscorable."""
    episode = score_statistics(batch, batch.group_K, config.stats_over)
    turn = group_statistics(return_K, cluster_K, batch.scorable_K)
    episode_K = _norm(score_K, episode, config.singleton, config)
    turn_K = _norm(return_K, turn, "zero", config)
    return Advantage(episode_K + config.turn_weight * turn_K, {"episode": episode_K, "turn": turn_K})


def _norm(value_K: FloatK, statistics: GroupStatistics, singleton: Singleton, config: GigpoConfig) -> FloatK:
    if config.mode == "mean_std_norm":
        return standardised(value_K, statistics, singleton, config.eps, config.flat_std)
    return deviation(value_K, statistics, singleton)
