"""Fields of a played episode that credit needs, in the form that the adapters of trainers read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.trainers.credit.external_rollouts import Rollout


def rollout_fields(turns: Sequence[tuple[Answer, Answer]]) -> dict[str, Any]:
    """Fields of ``Rollout`` as plain values.

    Args:
        turns: of each turn the situation before the action, and what came of it; at least one.
    """
    parts = [dict(after.parts) or {OUTCOME: after.reward} for _, after in turns]
    return {
        "rewards": {name: [part.get(name, 0.0) for part in parts] for name in _names(parts)},
        "anchors": [before.anchor for before, _ in turns],
        "understood": [after.understood for _, after in turns],
        "format_valid": [after.format_valid for _, after in turns],
        "truncated": not turns[-1][1].terminated,
    }


def with_same_parts(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts with the same reward parts: one that an episode never earned is 0 there.

    >>> [one.rewards for one in with_same_parts([
    ...     Rollout(group=0, rewards={"outcome": [1.0]}), Rollout(group=0, rewards={"outcome": [0.0], "cost": [-0.1]})
    ... ])]
    [{'cost': [0.0], 'outcome': [1.0]}, {'cost': [-0.1], 'outcome': [0.0]}]
    """
    given = [one.rewards for one in rollouts if isinstance(one.rewards, Mapping)]
    if len(given) < len(rollouts):
        return list(rollouts)
    return [
        replace(one, rewards={name: rewards.get(name, [0.0] * _turns(rewards)) for name in _names(given)})
        for one, rewards in zip(rollouts, given, strict=True)
    ]


def _names(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({OUTCOME, *(name for part in parts for name in part)})


def _turns(rewards: Mapping[str, Any]) -> int:
    return max((len(values) for values in rewards.values()), default=0)
