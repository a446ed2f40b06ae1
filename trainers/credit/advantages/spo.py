"""SPO: an episode's return against a value that is tracked for its task from step to step; no group is needed.

    v_g = alpha_g / (alpha_g + beta_g)        d_k = s_k - v_g        A_k = (d_k - mean d) / (std d + 1e-8)
    then  alpha_g <- rho alpha_g + sum of the task's returns,  beta_g <- rho beta_g + sum of (1 - return)
          rho = clip(2^(-D_g / half), rho_min, rho_max)

Shapes: turns K -> advantage_K; remembers task -> [alpha, beta].
Source: Single-stream Policy Optimization, arXiv 2509.13232; numbers agree with the authors' code
(verl-project/verl-recipe, ``spo/``) with one episode of each task.

Implementation:
1. Returns must be between ``low`` and ``high``, which stand for 0 and 1.
2. Mean and std are over the scorable episodes of the batch, ddof 1.
3. The value is what was known before this step; the update comes after the comparison.
4. A task begins at [1/2, 1/2], or with ``first_memory`` from episodes that were played before.
5. The trainer supplies the column "drift", the same number D_g at every turn of a task: the mean, over the reply tokens
   of the task's previous episodes, of |log-probability when they were drawn - log-probability now|, and NaN where there
   are none. The more the policy has changed, the more of what it once earned is forgotten.
6. With ``forgetting = "steady"`` the column is not needed and rho = rho_max.
7. Truncated episodes count as they ended: their return is what is tracked.

Differences: the authors begin with 8 episodes of each task from the first policy; here a task begins unknown. With
several episodes of a task in a step each counts, in theirs there is one. Their sampling of tasks is the curriculum
``spo_weights``.

Watch: ``success`` above what was tracked makes all advantages positive before they are centred: values that trail
a policy which improves fast say less; ``groups_without_signal`` says nothing with groups of one.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import counted, group_statistics, standardised
from manyturn.trainers.credit.stages import ADVANTAGES, StageConfig

EPS_STD = 1e-8
HALF = 0.06
RHO_MIN, RHO_MAX = 0.875, 0.96
Tracker = dict[str, list[float]]


class SpoConfig(StageConfig):
    needs_fresh_samples: ClassVar[bool] = True  # it tracks how the policy does
    compares_returns_only: ClassVar[bool] = True
    name: Literal["spo"] = "spo"
    forgetting: Literal["adaptive", "steady"] = "adaptive"
    """By how far the policy has moved since the task's last episodes, or always the same."""
    half: Annotated[float, OnlyWith("forgetting", "adaptive")] = Field(default=HALF, gt=0)
    """Drift in nats per token at which half is forgotten, between the bounds."""
    rho_min: Annotated[float, OnlyWith("forgetting", "adaptive")] = Field(default=RHO_MIN, gt=0, lt=1)
    """Least share that is kept."""
    rho_max: float = Field(default=RHO_MAX, gt=0, lt=1)
    """Largest share that is kept; always that with steady forgetting, and at a task's first episodes."""
    low: float = 0.0
    """Least return that an episode can have."""
    high: float = 1.0
    """Largest return that an episode can have."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"drift"} if self.forgetting == "adaptive" else ())

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.rho_min > self.rho_max:
            raise ValueError(f"rho_min {self.rho_min} is above rho_max {self.rho_max}")
        if self.low >= self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        return self


@ADVANTAGES.register(SpoConfig, remembers=True)
def spo(batch: TurnBatch, config: SpoConfig, memory: Tracker | None) -> tuple[FloatK, Tracker]:
    """Advantage of every turn, and the values after these episodes.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=["a", "b"])
    >>> advantage_K, memory = spo(batch, SpoConfig(forgetting="steady"), {"a": [3.0, 1.0]})
    >>> advantage_K.round(3), {name: np.round(pair, 3).tolist() for name, pair in memory.items()}
    (array([ 0.707,  0.707, -0.707]), {'a': [3.88, 0.96], 'b': [0.48, 1.48]})
    """
    groups, first_G, id_K = np.unique(batch.group_K, return_index=True, return_inverse=True)
    names = [_name(batch, group) for group in groups.tolist()]
    pairs_before = memory or {}
    alpha_G, beta_G = np.array([pairs_before.get(name, [0.5, 0.5]) for name in names]).T
    scale = config.high - config.low
    value_K = (alpha_G / (alpha_G + beta_G))[id_K]
    above_K = (batch.score_K() - config.low) / scale - value_K
    first_K = counted(batch, "episodes")
    unpunished_K = above_K + batch.penalty_K / scale
    everybody = group_statistics(unpunished_K, np.zeros_like(id_K), first_K)
    advantage_K = standardised(above_K, everybody, "zero", EPS_STD)

    return_E = (batch.episode_return_E() - config.low) / scale
    first_E, earned_E = id_K[first_K], return_E[batch.episode_K[first_K]]
    _check_range(earned_E * scale + config.low, config)
    rho_G = kept_share(batch, config)[first_G]
    episodes_G, earned_G = np.bincount(first_E, minlength=len(groups)), np.bincount(first_E, earned_E, len(groups))
    rho_G = np.where(episodes_G > 0, rho_G, 1.0)
    pairs = np.stack([rho_G * alpha_G + earned_G, rho_G * beta_G + episodes_G - earned_G], axis=1).tolist()
    return advantage_K, {**pairs_before, **dict(zip(names, pairs, strict=True))}


def kept_share(batch: TurnBatch, config: SpoConfig) -> FloatK:
    """rho of each turn's task (K).

    >>> batch = TurnBatch.from_episodes([[0], [1]], groups="ab", columns={"drift": [[0.006], [float("nan")]]})
    >>> kept_share(batch, SpoConfig()).round(3)
    array([0.933, 0.96 ])
    """
    if config.forgetting == "steady":
        return np.full(len(batch.turn_K), config.rho_max)
    if "drift" not in batch.columns:
        raise ValueError('spo: the batch has no column "drift"; set forgetting = "steady" to do without')
    drift_K = np.nan_to_num(batch.column("drift"), nan=0.0)
    return np.clip(2.0 ** (-drift_K / config.half), config.rho_min, config.rho_max)


def first_memory(scores: Mapping[str, Sequence[float]], rho_min: float = RHO_MIN) -> Tracker:
    """A starting memory from returns of 0 to 1 of each task's earlier episodes, worth 1 / (1 - rho_min) of them.

    >>> first_memory({"a": [1.0, 1.0, 0.0]})
    {'a': [5.0, 3.0]}
    """
    window = 1 / (1 - rho_min)
    return {
        name: [window * (sum(row) + 0.5) / (len(row) + 1), window * (len(row) - sum(row) + 0.5) / (len(row) + 1)]
        for name, row in scores.items()
    }


def task_weights(memory: Tracker, names: Sequence[str], exploration: float = 0.05) -> NDArray[np.float64]:
    """Sampling weights of the named tasks: sqrt(v (1 - v)) + exploration, largest where success is a toss-up.

    >>> task_weights({"a": [9.0, 1.0]}, ["a", "never seen"]).round(3)
    array([0.35, 0.55])
    """
    pair = np.array([memory.get(name, [0.5, 0.5]) for name in names]).reshape(-1, 2)
    value = pair[:, 0] / pair.sum(axis=1)
    return np.sqrt(value * (1 - value)) + exploration


def _name(batch: TurnBatch, group: int) -> str:
    if group not in batch.group_names:
        raise ValueError(f"spo remembers tasks by name: the batch's group_names lack group {group}")
    return batch.group_names[group]


def _check_range(returns: NDArray[np.float64], config: SpoConfig) -> None:
    wrong = (returns < config.low - 1e-9) | (returns > config.high + 1e-9)
    if wrong.any():
        raise ValueError(
            f"spo: an episode's return is {float(returns[wrong][0])}, outside {config.low} to {config.high}: "
            "set low and high to the least and largest return"
        )
