"""A price of actions that mean nothing."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.registry import Named
from manyturn.envs.contract.turn_reward import WRAPPERS, TurnReward


class InvalidPenaltyWrapperConfig(Named):
    name: Literal["invalid_penalty"] = "invalid_penalty"
    coef: float = Field(default=0.1, gt=0)
    """Reward taken away."""


@WRAPPERS.register(InvalidPenaltyWrapperConfig)
class InvalidPenalty(TurnReward):
    """Subtract ``coef`` from each turn whose action meant nothing (``info["understood"]`` is False).

    A broken reply is charged if the environment does not understand what it is given: a wrapper sees actions alone. The
    stage ``invalid_penalty`` of credit sees the format too.

    It does not preserve the optimal policy where an invalid action is worth a turn: because it passes time, or
    because its answer carries information. Where an invalid action never helps, the optimum stays.
    """

    preserves_optimal_policy = False
    part = "invalid"

    def __init__(self, env: gymnasium.Env, config: InvalidPenaltyWrapperConfig):
        super().__init__(env)
        self.coef = config.coef

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return parts if info["understood"] else self.add(parts, -self.coef)
