"""The judge of a search: a rule's verdicts on the turns of a path, whose mean is what the end of the path is worth.

A rule is a scripted judge: it asks no endpoint, and gives the same verdict each time. Verdicts of an endpoint's judge
are for training, where a journal keeps them.
"""

import math
from typing import Annotated, Any, Literal

from manyturn.agents.play.episode import Episode, TurnRecord
from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ValueContext
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.options.registry import Named
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.judges.rule import RULES, Case

_NAMELESS = EpisodeKey(0, "search", "path", 0), Task("path", "search", {})  # rules read turns


class JudgeValueConfig(Named):
    """Mean verdict of a rule on the turns of the path."""

    name: Literal["judge"] = "judge"
    rule: Annotated[Any, RULES.field]
    """The rule: phrase, repetition, reward_part, valid, or a plugin's."""


@VALUES.register(JudgeValueConfig)
class JudgeValue(PlaceValue):
    """Mean verdict of a rule on the turns of the path."""

    def __init__(self, context: ValueContext, config: JudgeValueConfig):
        if config.rule.needs_expert:
            raise ValueError(
                f"--search.value.rule {config.rule.name} asks the expert at each turn, which no try of a search does: "
                "name another rule, such as repetition"
            )
        self._rule = config.rule

    async def of(self, place: SearchPlace) -> float:
        key, task = _NAMELESS
        turns = [_turn(one) for one in place.path]
        scores = [score for score in RULES.apply(self._rule, Case(Episode(key, task, turns))) if not math.isnan(score)]
        return sum(scores) / len(scores) if scores else 0.0


def _turn(place: SearchPlace) -> TurnRecord:
    """The turn that led to a place."""
    before, drawn, seen = place.parent, place.drawn, place.seen
    assert before is not None and drawn is not None, "the start is no part of a path"
    act, acts = drawn.act, drawn.act.cut is None
    return TurnRecord(
        observation=before.step.observation,
        reply=act.reply,
        action=act.action if acts else "",
        format_valid=acts and act.format_valid and seen.format_valid,
        understood=acts and seen.understood,
        reward=seen.reward if acts else 0.0,
        parts=dict(seen.parts) if acts else {},
        anchor=before.step.anchor,
        progress=seen.progress,
        seconds=(0.0, 0.0),
        role=before.step.role,
        reasoning=act.reasoning,
        fault=act.fault,
    )
