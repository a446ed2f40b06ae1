"""The rule "phrase": 1 where the reply has a text in it, or where it has not."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from manyturn.trainers.play.judges.rule import RULES, Case, RuleConfig


class PhraseRuleConfig(RuleConfig):
    name: Literal["phrase"] = "phrase"
    text: str = Field(min_length=1)
    """The text; capitals count as small letters."""
    absent: bool = False
    """The text must not be there."""


@RULES.register(PhraseRuleConfig)
def phrase(case: Case, config: PhraseRuleConfig) -> Sequence[float]:
    """Presence of the text, or its absence."""
    return [float((config.text.lower() in turn.reply.lower()) is not config.absent) for turn in case.episode.turns]
