"""Potential-based shaping by the progress that the environment reports."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.facts import EnvFacts
from manyturn.envs.contract.registry import Named
from manyturn.envs.contract.turn_reward import WRAPPERS, TurnReward, WrapperMismatch


class ProgressRewardConfig(Named):
    name: Literal["progress_reward"] = "progress_reward"
    gamma: float = Field(default=1.0, gt=0, le=1)
    """The learner's discount by turn."""
    scale: float = Field(default=1.0, gt=0)
    """Factor of the potential."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        advantage = run.credit.advantage
        if self.gamma < 1 or run.credit.rewards or not advantage.compares_returns_only:
            return None
        return (
            f"{self.name} has no effect: with gamma = 1 it adds the same to the returns of all episodes of a task, and "
            f"{advantage.name} compares nothing else: take an advantage that separates turns, such as gigpo or mt_grpo"
        )


@WRAPPERS.register(ProgressRewardConfig)
class ProgressReward(TurnReward):
    """Potential-based shaping (Ng, Harada and Russell 1999): add ``scale * (gamma * P(s') - P(s))`` to every turn.

    A cut from outside the environment (agent.max_context, rollout.max_turns) is not seen here, so that what was paid
    until then stays paid: keep those limits out of reach.

    The potential P is ``info["progress"]``, and 0 once the episode has ended. It preserves the optimal policy of a
    learner that discounts turns by the same ``gamma``: summed over an episode the discounted parts give
    ``-scale * P(s_0)``, for any policy. An episode cut by ``max_turns`` counts as ended (Grzes 2017),
    since the estimators of group comparison do not bootstrap; a learner that does would need P(s') there.

    Undiscounted, ``-scale * P(s_0)`` is the same for all episodes of a task: an advantage that compares returns alone
    learns nothing else with it, which is refused.
    """

    preserves_optimal_policy = True
    part = "progress"

    def __init__(self, env: gymnasium.Env, config: ProgressRewardConfig):
        super().__init__(env)
        self.gamma, self.scale = config.gamma, config.scale
        self._potential = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._potential = self._progress(info.get("progress"))
        return text, info

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        before, self._potential = self._potential, 0.0 if ended else self._progress(info.get("progress"))
        return self.add(parts, self.scale * (self.gamma * self._potential - before))

    def restore(self, data: bytes) -> None:
        super().restore(data)
        self._potential = self._progress(self.unwrapped.progress())  # type: ignore[attr-defined]

    def _progress(self, value: float | None) -> float:
        if value is None:
            raise WrapperMismatch(
                f"{self.unwrapped} reports no progress, so progress_reward has no effect: "
                "override progress() in the environment, or leave the wrapper out"
            )
        return float(value)
