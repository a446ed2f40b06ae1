"""rLLM, unverified: a grouping hook that gives each step of the trajectories its credit, token by token.

rLLM groups the trajectories of a step by a hook, and then takes the ``advantage`` of their steps as it stands if
``rllm.algorithm.use_precomputed_advantage`` is true. Its registry of estimators carries one number for each trajectory,
so it has no place for credit of turns. Its steps have none for further numbers: methods that need some, such as SPA,
are refused. Contract: rLLM's repository of 2026-08-15, ``trainer/algorithms``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import by_reply, learnt_mask
from manyturn.trainers.credit.external_rollouts import Rollout, credit_rollouts

ANCHOR = "anchor"


class CreditHook:
    """rLLM's ``traj_grouping_hook``, which groups as ``grouping`` does and sets the steps' advantages.

    Args:
        credit: which methods give credit.
        grouping: rLLM's own hook, or yours.
        rewards: "steps" takes each step's reward; "trajectory" that of the trajectory, which its last step earned.
    """

    def __init__(
        self,
        credit: CreditConfig,
        grouping: Callable[..., list[Any]],
        rewards: Literal["steps", "trajectory"] = "steps",
    ):
        for column, stage in credit.needs.items():
            raise ValueError(f"{stage} needs {column!r}, for which steps of rLLM's have no place: take another method")
        self.credit, self.grouping, self.rewards = credit, grouping, rewards
        self.memory: Memory = {}

    def __call__(self, *arguments: Any, **options: Any) -> list[Any]:
        groups = self.grouping(*arguments, **options)
        if groups:
            self.memory = credit_steps(groups, self.credit, self.rewards, self.memory)
        return groups


def credit_steps(groups: Sequence[Any], credit: CreditConfig, rewards: str, memory: Memory) -> Memory:
    """Set ``step.advantage``, a list with a number for each token of ``response_ids``; returns what methods remember.

    Raises:
        ValueError: a trajectory does not fit, or a method lacks something.
    """
    owners = [(group, trajectory) for group in groups for trajectory in group.trajectories]
    rollouts = [_rollout(group.group_id, trajectory, rewards) for group, trajectory in owners]
    earned = credit_rollouts(rollouts, credit, memory)
    learnt_E = learnt_mask(earned, np.ones((len(owners), 1), int))[:, 0]
    replies = by_reply(earned.advantage_T, earned.batch)
    for (_, trajectory), own, learnt in zip(owners, replies, learnt_E.tolist(), strict=True):
        for step, advantages in zip(trajectory.steps, own, strict=True):
            step.advantage = (advantages * learnt).tolist()
    return dict(earned.memory)


def _rollout(group: str, trajectory: Any, rewards: str) -> Rollout:
    steps = trajectory.steps
    by_step = [step.reward for step in steps]
    if rewards == "steps" and trajectory.reward and not any(by_step):
        raise ValueError(
            f"the steps of a trajectory of {group!r} earned nothing, but the trajectory {trajectory.reward}: give "
            "steps their rewards, or set rewards='trajectory'"
        )
    anchors = [(step.metadata or {}).get(ANCHOR, step.observation) for step in steps]
    return Rollout(
        group=group,
        rewards=by_step if rewards == "steps" else trajectory.reward,
        tokens=[len(step.response_ids) for step in steps],
        anchors=None if any(anchor is None for anchor in anchors) else anchors,
    )
