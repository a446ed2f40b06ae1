"""What a configuration asks of its environment: refused before the warm-up where the environment cannot give it.

A rule takes a configuration and the seats of its environment, and returns why they do not go together, or None. Where
nobody can know, as with the reward parts of an environment that lists none, the stage itself judges when it runs.
"""

from collections.abc import Callable

from manyturn.agents.role_views import own_parts
from manyturn.envs.contract.options import ConfigError
from manyturn.envs.contract.turn import OUTCOME
from manyturn.envs.hosting.seats import Seats
from manyturn.trainers.play.curricula.uniform import UniformConfig
from manyturn.trainers.play.pool import CURRICULA, TaskPool
from manyturn.trainers.recipe.config import RunConfig

Rule = Callable[[RunConfig, Seats], str | None]


def check_environment(config: RunConfig, seats: Seats) -> None:
    """Raise ConfigError with the reason of the first rule that refuses the environment."""
    for rule in RULES:
        if reason := rule(config, seats):
            raise ConfigError(reason)


def _parts_are_paid(config: RunConfig, seats: Seats) -> str | None:
    """A part that a stage names is one of the environment's, of its wrappers', or of a stage before."""
    there = {OUTCOME, *own_parts(seats.part_names, seats.roles)}
    for stage in config.credit.rewards if seats.lists_parts else ():
        if missing := sorted(stage.named_parts() - there):
            return (
                f"{stage.name} names the reward part {missing[0]!r}, which nothing pays: {seats.name} and the stages "
                f"before it pay {', '.join(sorted(there))}"
            )
        there |= stage.adds
    return None


def _curriculum_chooses(config: RunConfig, seats: Seats) -> str | None:
    """There is something to choose from, and what the first step is to draw can be drawn."""
    if isinstance(config.curriculum, UniformConfig) or not config.steps:
        return None
    tasks, wanted = seats.tasks("train"), config.rollout.tasks
    if len(tasks) <= wanted:
        return (
            f"curriculum {config.curriculum.name} has no effect: a step plays {wanted} tasks, and the training split "
            f"has {len(tasks)}: lower rollout.tasks, or leave the section out"
        )
    try:
        CURRICULA.apply_remembering(config.curriculum, {}, TaskPool(tasks, wanted, config.seed, step=1))
    except ValueError as error:
        return str(error)
    return None


def _agents_are_played(config: RunConfig, seats: Seats) -> str | None:
    """Everybody has a role, and nobody else."""
    if not config.roles or set(config.roles) == set(seats.roles):
        return None
    if len(seats.roles) == 1:
        return f"[roles] has no effect: an episode of {seats.name} has one role; leave the section out"
    return (
        f"[roles] names {', '.join(sorted(config.roles))}, but those who act in {seats.name} are "
        f"{', '.join(seats.roles)}: give each a policy"
    )


RULES: tuple[Rule, ...] = (
    _agents_are_played,
    _parts_are_paid,
    _curriculum_chooses,
)
