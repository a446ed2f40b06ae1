"""The rule "reward_part": 1 where the environment paid at least so much of a named part of the reward."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig


class RewardPartRuleConfig(RuleConfig):
    name: Literal["reward_part"] = "reward_part"
    part: str = Field(min_length=1)
    """Name of the part; a turn that did not earn it has 0."""
    least: float = 0.0
    """Least reward of a turn that passes."""


@RULES.register(RewardPartRuleConfig)
def reward_part(case: Case, config: RewardPartRuleConfig) -> Sequence[float]:
    """Reward of at least so much."""
    return [float(turn.parts.get(config.part, 0.0) >= config.least) for turn in case.episode.turns]
