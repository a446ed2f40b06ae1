"""Stratified GRPO: episodes compared with those of their task that have the same structure.

    A_k = blend SAN_k + (1 - blend) GRPO_k
    SAN_k = (s_k - mean_h s) / (std_h s + eps)        h: the episodes of k's group in k's stratum, ddof 1

Shapes: turns K -> advantage_K, with the levels "stratum" and "group" (K each, before blending).
Source: Stratified GRPO, arXiv 2510.06214, whose strata are numbers of search calls: episodes that called the tool twice
get another return for reasons that have nothing to do with how well they did it.

Implementation:
1. ``stratum`` names what splits a group: "turns" is the number of turns of the episode, anything else a column of the
   batch, summed over the episode's turns or reply tokens; "tool_calls" is the paper's, counted by the column of that
   name.
2. It has no default, because it must be something that the outcome does not decide: where success ends an episode, the
   number of turns shows whether it succeeded, and the comparison inside a stratum takes just that away.
3. Where nearly every episode has its own number, ``edges`` makes few strata of many numbers.
4. A stratum of one, or without spread, gives 0.
5. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended.

Differences: no code by the authors is public; numbers agree with the formula under rule 4. The blend, the std and rule
4 are not given in full by the paper.

Watch: ``groups_without_signal`` counts full groups; where strata are small most comparisons inside them are 0 although
the group has signal, and ``advantage_std`` falls below that of GRPO: use fewer strata or larger groups.
"""

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from manyturn.trainers.credit.batch.turn_batch import IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import equal_anchors
from manyturn.trainers.credit.groups.group_statistics import EPS, GroupConfig, score_statistics, standardised
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class StratifiedConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["stratified"] = "stratified"
    stratum: str
    """What the episodes of a stratum share: their number of "turns", or the sum of a column such as "tool_calls"."""
    edges: tuple[float, ...] = ()
    """Bounds between strata, ascending, each the least number of the next stratum; none: each number is a stratum."""
    blend: float = Field(default=0.8, gt=0, le=1)
    """Share of the comparison inside the stratum; the rest is GRPO's."""
    eps: float = Field(default=EPS, ge=0)
    """Added to the standard deviations."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(() if self.stratum == "turns" else {self.stratum})

    @field_validator("edges")
    @classmethod
    def _ascending(cls, edges: tuple[float, ...]) -> tuple[float, ...]:
        if any(low >= high for low, high in pairwise(edges)):
            raise ValueError(f"edges {list(edges)} do not ascend: put them in order, each once")
        return edges


@ADVANTAGES.register(StratifiedConfig)
def stratified(batch: TurnBatch, config: StratifiedConfig) -> Advantage:
    """Advantage of every turn, with both comparisons.

    >>> batch = TurnBatch.from_episodes([[3], [1], [0, 0], [0, 0]], groups=[0, 0, 0, 0])
    >>> advantage = stratified(batch, StratifiedConfig(stratum="turns", blend=0.5))
    >>> advantage.levels["stratum"].round(3), advantage.levels["group"].round(3)
    (array([ 0.707, -0.707,  0.   ,  0.   ,  0.   ,  0.   ]), array([ 1.414,  0.   , -0.707, -0.707, -0.707, -0.707]))
    """
    score_K, stratum_K = batch.score_K(), equal_anchors(batch.group_K, strata(batch, config))
    stratum, group = (score_statistics(batch, id_K, config.stats_over) for id_K in (stratum_K, batch.group_K))
    inside_K = standardised(score_K, stratum, "zero", config.eps)
    group_K = standardised(score_K, group, config.singleton, config.eps)
    total_K = config.blend * inside_K + (1 - config.blend) * group_K
    return Advantage(total_K, {"stratum": inside_K, "group": group_K})


def strata(batch: TurnBatch, config: StratifiedConfig) -> IntK:
    """Number of the stratum of each turn's episode (K), the same in all groups.

    >>> batch = TurnBatch.from_episodes([[0], [0, 0], [0, 0, 0]], groups=[0, 0, 0])
    >>> strata(batch, StratifiedConfig(stratum="turns", edges=(2,)))
    array([0, 1, 1, 1, 1, 1])
    """
    if config.stratum == "turns":
        amount_E = np.bincount(batch.episode_K).astype(np.float64)
    elif config.stratum in batch.token_columns:
        amount_T, episode_T = batch.token_columns[config.stratum], batch.episode_K[batch.turn_of_T]
        amount_E = np.bincount(episode_T, amount_T, len(batch.truncated_E))
    else:
        amount_E = np.bincount(batch.episode_K, batch.column(config.stratum))
    unknown_K = np.isnan(amount_E)[batch.episode_K] & batch.scorable_K
    if unknown_K.any():
        episode = int(batch.episode_K[unknown_K.argmax()])
        raise ValueError(f"stratified: the column {config.stratum!r} is not known everywhere in episode {episode}")
    number_E = np.digitize(amount_E, config.edges) if config.edges else np.unique(amount_E, return_inverse=True)[1]
    return number_E[batch.episode_K]
