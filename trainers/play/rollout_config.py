"""Options of rollouts: how many episodes a step plays, and how."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationInfo, model_validator

from manyturn.envs.contract.options import Options, Rule, check
from manyturn.trainers.play.branching import Branching
from manyturn.trainers.play.horizon import Horizon


class RolloutConfig(Options):
    moved: ClassVar[Mapping[str, str]] = {"patience": "engine.patience"}
    tasks: int = Field(default=16, ge=1)
    """Tasks N in a step."""
    group: int = Field(default=8, ge=1)
    """Episodes G of each task."""
    concurrency: int = Field(default=512, ge=1)
    """Episodes that run side by side."""
    max_turns: int = Field(default=100, ge=1)
    """Turn limit of environments that have none of their own."""
    horizon: Horizon | None = None
    """A turn limit of training episodes that grows with the steps."""
    rounds: int = Field(default=1, ge=1)
    """Most rounds of play in a step: groups whose episodes all earn the same are replaced in the next round."""
    branching: Branching | None = None
    """Episodes of a group that fork off others where the policy is unsure; unset, all begin at the first turn."""
    attempts: int = Field(default=3, ge=1)
    """How often an episode that ended in an error is tried."""
    error_share: float = Field(default=0.1, ge=0, le=1)
    """Share of episodes of a step that may end in an error before the run stops."""

    @model_validator(mode="after")
    def _combination_makes_sense(self, info: ValidationInfo) -> Self:
        check(self, OF_ROLLOUT, info.context)
        return self


def _group_has_room_for_branches(rollout: Any) -> str | None:
    branching = rollout.branching
    if branching is not None and branching.initial >= rollout.group:
        return (
            f"rollout.branching.initial = {branching.initial} leaves nothing of rollout.group = {rollout.group} to "
            "branch: lower it, raise rollout.group, or leave branching out"
        )
    return None


def _there_is_a_turn_to_fork_at(rollout: Any) -> str | None:
    if rollout.branching is not None and rollout.max_turns == 1:
        return (
            "rollout.branching has no effect where rollout.max_turns = 1, for episodes fork behind their first turn: "
            "raise max_turns, or leave branching out"
        )
    return None


OF_ROLLOUT: tuple[Rule, ...] = (_group_has_room_for_branches, _there_is_a_turn_to_fork_at)
