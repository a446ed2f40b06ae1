"""The rule "repetition": 0 where the episode did the same in the same situation before, else 1."""

from collections.abc import Sequence
from typing import Literal

from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig


class RepetitionRuleConfig(RuleConfig):
    name: Literal["repetition"] = "repetition"


@RULES.register(RepetitionRuleConfig)
def repetition(case: Case, config: RepetitionRuleConfig) -> Sequence[float]:
    """Absence of repetition."""
    seen, scores = set[tuple[str, str]](), list[float]()
    for turn in case.episode.turns:
        scores.append(float((turn.anchor, turn.action) not in seen))
        seen.add((turn.anchor, turn.action))
    return scores
