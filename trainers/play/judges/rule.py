"""Rules: what a scripted judge asks of each turn, registered by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.options.registry import Named, Registry


@dataclass(frozen=True)
class Case:
    """An episode before a judge.

    Attributes:
        episode: with K turns.
        expert: the expert's action at each turn, as far as it could be asked; empty where no rule needs it.
    """

    episode: Episode
    expert: Sequence[str] = ()


class RuleConfig(Named):
    """Base of the options of a rule. A subclass narrows ``name`` to a Literal of one string."""

    needs_expert: ClassVar[bool] = False
    """Whether the environment's expert has to be asked before each turn."""


RULES: Registry[Sequence[float]] = Registry("rule", "manyturn.trainers.play.judges.rules")
"""Rules: (case, config) -> a number from 0 to 1 for each of the K turns; NaN abstains."""
