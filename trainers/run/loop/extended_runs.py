"""A run that is resumed for more steps than it was begun with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.rate_schedule import knows_the_end, rate_share
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.checkpoint import read_state
from manyturn.trainers.record.config_edits import plain


def lengthened(config: RunConfig, steps: int, checkpoint: Path | None) -> RunConfig:
    """The configuration of a run with another number of steps.

    Raises:
        ConfigError: the run has done more already, or its options do not go with so many.
    """
    done = 0 if checkpoint is None else read_state(checkpoint)["step"]
    if steps < done:
        raise ConfigError(f"{checkpoint} has done {done} steps already: give --steps {done} or more")
    return parse_config({**plain(config), "steps": steps})


def schedule_note(config: RunConfig, edits: Mapping[str, tuple[Any, Any]], done: int) -> str | None:
    """The difference to a run that had as many steps from the start; None if there is none.

    Args:
        config: with the new number of steps.
        edits: what was changed, with the number that it had.
        done: how many steps are done.
    """
    learner = config.learner
    if not knows_the_end(learner) or not done or "steps" not in edits:
        return None
    before = edits["steps"][0]
    was, goes_on = rate_share(learner, done, before), rate_share(learner, done + 1, config.steps)
    return (
        f"the learning rate {_moves(learner)} over all steps: step {done} learnt at {was:.2g} of learner.lr on the way "
        f"to {before} steps, and step {done + 1} goes on at {goes_on:.2g} on the way to {config.steps}. A run of "
        f"{config.steps} steps from the start would have other weights"
    )


def epo_note(config: RunConfig, edits: Mapping[str, tuple[Any, Any]], done: int) -> str | None:
    """The same of EPO's schedule, which has the run's length where no other is set."""
    epo = config.objective.epo
    if epo is None or epo.horizon is not None or not done or "steps" not in edits:
        return None
    return (
        f"the schedule of EPO's weight was that of {edits['steps'][0]} steps and is that of {config.steps}: a run of "
        f"{config.steps} steps from the start would have had it all along"
    )


def _moves(learner: LearnerConfig) -> str:
    """The effect of a schedule that depends on the number of steps."""
    rises = f"rises for learner.lr_warmup = {learner.lr_warmup:g} of the run" if 0 < learner.lr_warmup < 1 else ""
    falls = f"falls to learner.lr_end = {learner.lr_end:g} of itself" if learner.lr_schedule != "constant" else ""
    return " and ".join(move for move in (rises, falls) if move)
