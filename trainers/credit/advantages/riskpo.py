"""RiskPO: bundles of tasks are scored together, and those that end low are pushed away; what ends high moves nothing.

    A_k = (weight C(S) + R(S)) / (weight + 1) / std_b S / std_g s,   S: sum of scores of one episode of each task in b
    C(S) = - (q_low - S)^+ / low                                     value at risk below the quantile ``low``
    R(S) = ((S - q_low)^+ - (S - q_high)^+ - (q_high - q_low)) / (high - low)                      between both
    after the step:  q_a <- q_a + rate (a - share of bundles with S < q_a)        for a = low, high

Shapes: turns K -> advantage_K. s: an episode's return; b: the bundle; g: the task. A turn's penalty is taken from its
own advantage.
Source: RiskPO: Risk-based Policy Optimization, arXiv 2510.00911; numbers agree with the authors' code
(RTkenny/RiskPO, ``compute_grpo_bundle_rvar_outcome_advantage_quantile_tracking``, credit_assign_mode "std").

Implementation:
1. A is at most 0, and 0 from q_high on: the method learns by failures, most by the worst, and keeps entropy up.
2. A bundle has as many scores as its smallest task has scorable episodes: the i-th of each task are one score. Episodes
   beyond that get 0. Tasks are bundled by a hash of their names, as evenly as can be.
3. Standard deviations (ddof 1) that are 0, or of a single score, count as 1.
4. In the first step quantiles are those of its own scores; then they are tracked, and part of a checkpoint.
5. A bundle with fewer tasks counts as if it had ``bundle``: its sum is scaled, so that quantiles fit all bundles.
6. Several updates of a few episodes, at the high learning rate of a tiny model, push away whatever these said: set
   ``learner.minibatch`` to a step's episodes. A step of few tasks learns more by ``bundle = 1``, since a success shares
   the blame of its bundle.

Differences: theirs bundles tasks in the order of the data, and divides by 1e-6 where a bundle's scores are all equal.
Their first step has quantiles for each bundle. Left out: their other ways to share a bundle's advantage, and the risk
that is sought instead.

Watch: ``risk_low`` and ``risk_high``, the quantiles: both at the best score, nothing is left to learn from.
``entropy`` should fall more slowly than GRPO's.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.random_keys import digest
from manyturn.trainers.credit.batch.episode_sums import group_E
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig

EPS = 1e-6


class RiskpoConfig(StageConfig):
    needs_fresh_samples: ClassVar[bool] = True  # it tracks how the policy does
    compares_returns_only: ClassVar[bool] = True
    name: Literal["riskpo"] = "riskpo"
    bundle: int = Field(default=5, ge=1)
    """Tasks that are scored together."""
    low: float = Field(default=0.2, gt=0, lt=1)
    """Quantile below which scores weigh more."""
    high: float = Field(default=0.9, gt=0, lt=1)
    """Quantile from which scores count as good enough."""
    weight: float = Field(default=1.5, ge=0)
    """Weight of what is below the low quantile, where that between both has 1."""
    rate: float = Field(default=0.1, gt=0)
    """How far a quantile moves in a step, in units of a bundle's score."""
    std: bool = True
    """Divide by the bundle's standard deviation."""

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} is not below high = {self.high}: set low below high")
        return self


@ADVANTAGES.register(RiskpoConfig, remembers=True)
def riskpo(
    batch: TurnBatch, config: RiskpoConfig, memory: Mapping[str, Sequence[float]] | None
) -> tuple[Advantage, dict[str, list[float]]]:
    """Advantage of every turn; remembers both quantiles.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=["a", "a"])
    >>> config = RiskpoConfig(bundle=1, low=0.25, high=0.75, weight=1.0, std=False)
    >>> advantage, memory = riskpo(batch, config, {"quantiles": [0.5, 1.0]})
    >>> advantage.total_K.round(3), memory
    (array([ 0.   ,  0.   , -2.121]), {'quantiles': [0.475, 1.025]})
    """
    returns_E, groups_E, bundles = batch.episode_return_E(), group_E(batch), _bundles(batch, config.bundle)
    levels = np.array([config.low, config.high])
    papers = [_papers(returns_E, groups_E, groups, config.bundle) for groups in bundles]
    scores = np.concatenate([sums for _, sums in papers]) if papers else np.zeros(0)
    if memory is None:
        quantiles = np.quantile(scores, levels) if len(scores) else np.zeros(2)
    else:
        quantiles = np.array(memory["quantiles"])
    advantage_E = np.zeros(len(returns_E))
    for (members, sums), groups in zip(papers, bundles, strict=True):
        risk = _risk(sums, quantiles, config) / (_std(sums) + EPS if config.std else 1.0)
        for row, group in zip(members, groups, strict=True):
            own = returns_E[(groups_E == group) & ~np.isnan(returns_E)]
            advantage_E[row] = risk / (_std(own) + EPS)
    total_K = np.where(batch.scorable_K, advantage_E[batch.episode_K] - batch.penalty_K, 0.0)
    figures = {"risk_low": float(quantiles[0]), "risk_high": float(quantiles[1])}
    if memory is not None and len(scores):
        quantiles = quantiles + config.rate * (levels - (scores < quantiles[:, None]).mean(axis=1))
    return Advantage(total_K, {}, figures), {"quantiles": quantiles.tolist()}


def _risk(sums: FloatK, quantiles: FloatK, config: RiskpoConfig) -> FloatK:
    """(weight C + R) / (weight + 1) of each score."""
    low, high = quantiles
    between = np.maximum(sums - low, 0) - np.maximum(sums - high, 0) + low - high
    below = -np.maximum(low - sums, 0) / (config.low + EPS)
    return (config.weight * below + between / (config.high - config.low + EPS)) / (config.weight + 1)


def _bundles(batch: TurnBatch, size: int) -> list[list[int]]:
    """Groups of tasks with a scorable episode, bundle by bundle."""
    names = {group: batch.group_names.get(group, str(group)) for group in batch.group_K[batch.scorable_K].tolist()}
    ordered = sorted(names, key=lambda group: digest("bundle", names[group]))
    count = -(-len(ordered) // size)
    return [part.tolist() for part in np.array_split(np.array(ordered, np.int64), count)] if count else []


def _papers(returns_E: FloatK, groups_E: IntK, groups: Sequence[int], size: int) -> tuple[list[IntK], FloatK]:
    """For each task the episodes that are in a score, in order; and the scores."""
    able = [np.flatnonzero((groups_E == group) & ~np.isnan(returns_E)) for group in groups]
    count = min(map(len, able))
    members = [episodes[:count] for episodes in able]
    return members, np.sum([returns_E[row] for row in members], axis=0) * (size / len(groups))


def _std(values: FloatK) -> float:
    """Standard deviation (ddof 1); 1 where there is none."""
    return float(values.std(ddof=1)) if len(values) > 1 and values.min() < values.max() else 1.0
