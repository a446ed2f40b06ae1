"""Hints in tiers, made from the environment's expert without a model.

    tier s in (0, 1]     the first ceil(s n) of the expert's n actions
    tier "milestones"    the actions after which the expert's progress rose

Sources: Scaf-GRPO, arXiv 2510.19807, whose hints go from knowledge over a plan to the solution and are written by a
larger model; GHPO, arXiv 2507.10628, whose hints are growing shares of a known solution; NuRL, arXiv 2509.25666, whose
hints are withheld wherever an attempt succeeds. See ``rollout.guidance`` for when a hint is read.

Implementation:
1. The expert plays the group's own world once; a group whose expert fails gets no hint.
2. Each tier is a round; a stronger one is read only where all weaker ones failed too.

Differences: theirs replaces one failed reply by a guided one that succeeds; here the group keeps all members. Theirs
asks tier after tier and part after part of a tier; here ``tiers`` has them in one list.

Watch: ``guided_success`` by the tiers that you give: if only the last one helps, leave the others out.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from manyturn.agents.play.episode import TurnRecord
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.play.guidance.expert_replay import expert_episodes
from manyturn.trainers.play.guidance.guidance import GUIDANCE, GuidanceConfig, Guide, Texts, Workshop

Tier = Annotated[float, Field(gt=0, le=1)] | Literal["milestones"]


class HintsConfig(GuidanceConfig):
    name: Literal["hints"] = "hints"
    tiers: tuple[Tier, ...] = Field(default=(0.25, 0.5, 1.0), min_length=1)
    """What the rounds show, one after the other: a share of the expert's actions, or the milestones among them."""

    @property
    def levels(self) -> int:
        return len(self.tiers)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if env is not None and not env.has_expert:
            return (
                f"rollout.guidance = 'hints' needs an expert, which {env.name} does not have: override expert() in the "
                "environment, or take name = 'critique' with a critic"
            )
        if env is not None and "milestones" in self.tiers and not env.has_progress:
            return (
                f"rollout.guidance.tiers has milestones, and {env.name} reports no progress: override progress() in "
                "the environment, or give shares"
            )
        return None


def hint(turns: Sequence[TurnRecord], tier: float | str) -> str | None:
    """The words of a hint from the expert's turns; None where there is nothing to say."""
    if isinstance(tier, str):
        before = [None, *(turn.progress for turn in turns)]
        actions = [turn.action for turn, last in zip(turns, before, strict=False) if _rises(turn.progress, last)]
    else:
        actions = [turn.action for turn in turns[: math.ceil(tier * len(turns))]]
    return spoken(actions) if actions else None


def spoken(actions: Sequence[str]) -> str:
    """Actions in the words of a hint.

    >>> spoken(["take red", "take blue"])
    'Hint: take red; take blue.'
    """
    return f"Hint: {'; '.join(actions)}."


def _rises(progress: float | None, last: float | None) -> bool:
    return progress is not None and progress > (last or 0.0)


@GUIDANCE.register(HintsConfig)
async def hints(workshop: Workshop, guides: Sequence[Guide], config: HintsConfig) -> Texts:
    """The hint of each guide's level."""
    experts = await expert_episodes(workshop, [guide.source for guide in guides])
    turns = [experts[guide.source.key].turns if guide.source.key in experts else () for guide in guides]
    return [hint(played, config.tiers[guide.level]) for played, guide in zip(turns, guides, strict=True)]
