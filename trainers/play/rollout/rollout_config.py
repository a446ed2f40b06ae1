"""Options of rollouts: how many episodes a step plays, and how."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.task_filter import chosen_tasks
from manyturn.trainers.credit.stages import ADVANTAGES
from manyturn.trainers.play.guidance.guidance import GUIDANCE
from manyturn.trainers.play.rollout.branching import Branching
from manyturn.trainers.play.rollout.horizon import Horizon
from manyturn.trainers.play.rollout.replay import SuccessReplay
from manyturn.trainers.play.rollout.tempering import Tempering
from manyturn.trainers.play.tasks.curriculum_input import TaskPool
from manyturn.trainers.play.tasks.env_shares import drawn_tasks


class RolloutConfig(Options):
    moved: ClassVar[Mapping[str, str]] = {"patience": "engine.reproducible = false"}
    tasks: int = Field(default=16, ge=1, le=100_000)
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
    spread_share: float = Field(default=1.0, gt=0, le=1)
    """Share of a step's groups that are learnt from: those whose returns are spread the most; 1 learns from all."""
    branching: Branching | None = None
    """Episodes of a group that fork off others where the policy is unsure; unset, all begin at the first turn."""
    tempering: Tempering | None = None
    """Episodes of a group that are drawn at another temperature, to hold the policy's entropy at a target; unset: none.
    """
    guidance: Annotated[Any, GUIDANCE.optional_field] = None
    """A text that later episodes of a group read where all earlier ones failed: hints, critique, or a plugin's; unset:
    none."""
    replay: SuccessReplay | None = None
    """Stored successes that take the places of attempts in groups without one; unset: none are stored."""
    attempts: int = Field(default=3, ge=1)
    """How often an episode that ended in an error is tried."""
    error_share: float = Field(default=0.1, ge=0, le=1)
    """Share of episodes of a step that may end in an error before the run stops."""
    cut_share: float = Field(default=0.95, ge=0, le=1)
    """Share of the first step's replies that may be cut at sampling.max_tokens before the run stops, where a model of
    its own words begins without a warm-up; 1 goes on in any case."""

    def most_turns(self, env: EnvFacts | None) -> int:
        """Turns that an episode of the run has at most.

        Args:
            env: its environment; None while it is not known.
        """
        growing = self.horizon.last if self.horizon is not None else None
        own = env.max_turns if env is not None else None
        return min(limit for limit in (self.max_turns, growing, own) if limit is not None)

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        advantage = run.credit.advantage
        if self.group == 1 and advantage.compares_groups and getattr(advantage, "singleton", "zero") == "zero":
            others = ", ".join(ADVANTAGES.names(lambda kind: not kind.compares_groups))
            return (
                f"rollout.group = 1 leaves {advantage.name} nothing to compare an episode with: raise rollout.group, "
                f"or take an advantage that compares no groups ({others})"
            )
        if self.group == 1 and self.rounds > 1:
            return (
                f"rollout.rounds = {self.rounds} plays groups again whose episodes earn the same, as every group of "
                "one does: raise rollout.group, or leave rounds out"
            )
        if self.spread_share < 1 and min(self.group, self.tasks) == 1:
            return (
                f"rollout.spread_share = {self.spread_share} ranks a step's groups by the spread of their returns, of "
                "which one task or one episode leaves nothing: raise rollout.tasks and rollout.group, or leave it out"
            )
        return _refuse_choice(run, env) if env and run.curriculum.chooses and run.steps else None


def _refuse_choice(run: Any, env: EnvFacts) -> str | None:
    """The reason for which a curriculum has nothing to choose from, or cannot draw what the first step is to play."""
    tasks, count = chosen_tasks(run.tasks, "train", env), run.rollout.tasks
    if len(tasks) <= count:
        return (
            f"curriculum {run.curriculum.name} has no effect: a step plays {count} tasks, and there are "
            f"{len(tasks)} training tasks: lower rollout.tasks, or leave the section out"
        )
    try:
        drawn_tasks(run.curriculum, {}, TaskPool(tasks, count, run.seed, step=1), run.weights)
    except ValueError as error:
        return str(error)
    return None
