"""The column "progress" (K): how near to the goal each turn left the episode, as the environment reports it."""

from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ProgressColumnConfig(ColumnConfig):
    name: Literal["progress"] = "progress"
    method = "progress()"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if env is None or env.has_progress:
            return None
        return f"{env.name} does not provide: override progress() in the environment, or leave that stage out"


@COLUMNS.register(ProgressColumnConfig)
def progress(step: PlayedStep, config: ProgressColumnConfig) -> Supplied:
    """Of each turn; NaN where it is not known."""
    progress_K = [turn.progress for episode in step.episodes for turn in episode.turns]
    return Supplied(
        columns={"progress": np.array([np.nan if value is None else value for value in progress_K], np.float64)}
    )
