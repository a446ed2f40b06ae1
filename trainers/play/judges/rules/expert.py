"""The rule "expert": 1 where the turn did what the environment's expert would have done there.

The episode's actions are played once more in its world, and the expert is asked before each. Turns at which it could
not be asked have no verdict.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig


class ExpertRuleConfig(RuleConfig):
    name: Literal["expert"] = "expert"
    needs_expert: ClassVar[bool] = True


@RULES.register(ExpertRuleConfig)
def expert(case: Case, config: ExpertRuleConfig) -> Sequence[float]:
    """Agreement with the expert."""
    turns = case.episode.turns
    words = [*case.expert, *[None] * (len(turns) - len(case.expert))]
    pairs = zip(turns, words, strict=True)
    return [float("nan") if word is None else float(turn.action == word) for turn, word in pairs]
