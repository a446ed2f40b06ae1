"""Potential-based shaping by the progress that the environment reports."""

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
from pydantic import Field

from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS, TurnReward


class ProgressRewardConfig(Named):
    name: Literal["progress_reward"] = "progress_reward"
    gamma: float = Field(default=1.0, gt=0, le=1)
    """The learner's discount by turn."""
    scale: float = Field(default=1.0, gt=0)
    """Factor of the potential."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        advantage = run.credit.advantage
        of_turns = not advantage.compares_returns_only
        if run.credit.rewards or (of_turns and advantage.turn_discount != self.gamma):
            return None
        if self.gamma == 1:
            same = "the returns of all episodes of a task" + (" and of all turns in one situation" if of_turns else "")
            return (
                f"{self.name} has no effect: with gamma = 1 it adds the same to {same}, and {advantage.name} compares "
                "nothing else: take progress_gain, which is not taken back, or leave it out"
            )
        turns = f"cancels in {advantage.name}'s comparison of turns, and " if of_turns else ""
        return (
            f"{self.name} with gamma = {self.gamma:g} {turns}takes {1 - self.gamma:.2g} x the sum of its progress off "
            f"the return of each episode, which {advantage.name} compares: progress would be charged; take "
            "progress_gain, which is not taken back, or leave it out"
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

    Undiscounted, ``-scale * P(s_0)`` is the same for all episodes of a task, and ``-scale * P(s)`` for all turns in one
    situation: an advantage that compares nothing else learns nothing else with it, which is refused. With a discount it
    adds ``-scale * (P(s_0) + (1 - gamma) * sum of all later P(s))`` to an episode's undiscounted return, so that group
    comparison would charge progress, which is refused too. What is paid for good is ``progress_gain``.
    """

    preserves_optimal_policy = True
    part = "progress"

    def __init__(self, env: gymnasium.Env, config: ProgressRewardConfig):
        super().__init__(env)
        self.gamma, self.scale = config.gamma, config.scale
        self._potential = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        text, info = self.env.reset(seed=seed, options=options)
        self._potential = self.progress(info.get("progress"))
        return text, info

    def reward_parts(self, parts: dict[str, float], ended: bool, info: Mapping[str, Any]) -> dict[str, float]:
        before, self._potential = self._potential, 0.0 if ended else self.progress(info.get("progress"))
        return self.add(parts, self.scale * (self.gamma * self._potential - before))

    def restore(self, data: bytes) -> None:
        super().restore(data)
        self._potential = self.progress(self.unwrapped.progress())  # type: ignore[attr-defined]
