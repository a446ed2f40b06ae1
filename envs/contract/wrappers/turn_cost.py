"""A price of time."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward


class TurnCostConfig(Named):
    name: Literal["turn_cost"] = "turn_cost"
    cost: float = Field(default=0.01, gt=0)
    """Reward taken away each turn."""


@WRAPPERS.register(TurnCostConfig)
class TurnCost(TurnReward):
    """Subtract ``cost`` from every turn, so that shorter episodes are better.

    It does not preserve the optimal policy: of two ways to the goal it prefers the shorter, and a goal that costs
    more turns than it is worth is given up.
    """

    preserves_optimal_policy = False
    part = "turn"

    def __init__(self, env: gymnasium.Env, config: TurnCostConfig):
        super().__init__(env)
        self.cost = config.cost

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        return self.add(parts, -self.cost)
