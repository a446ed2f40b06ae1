"""The rule "valid": 1 where an action could be read from the reply and the environment understood it."""

from collections.abc import Sequence
from typing import Literal

from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig


class ValidRuleConfig(RuleConfig):
    name: Literal["valid"] = "valid"


@RULES.register(ValidRuleConfig)
def valid(case: Case, config: ValidRuleConfig) -> Sequence[float]:
    """Validity."""
    return [float(turn.valid) for turn in case.episode.turns]
