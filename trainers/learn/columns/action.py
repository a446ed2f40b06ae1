"""The column "action" (K): a number for what each turn did, by which methods compare what was tried in one situation.

Equal texts of actions, spaces around them apart, have equal numbers in one step. Numbers mean nothing from step to
step.
"""

from typing import Literal

import numpy as np

from manyturn.trainers.credit.batch.turn_batch import ids_of
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ActionConfig(ColumnConfig):
    name: Literal["action"] = "action"


@COLUMNS.register(ActionConfig)
def action(step: PlayedStep, config: ActionConfig) -> Supplied:
    """Of each turn, numbered by first appearance; and how many different ones a task's turns took, in the mean."""
    texts = [turn.action.strip() for episode in step.episodes for turn in episode.turns]
    action_K = ids_of(texts)
    groups = np.unique(step.batch.group_K)
    distinct = float(np.mean([len(np.unique(action_K[step.batch.group_K == group])) for group in groups]))
    return Supplied(columns={"action": action_K.astype(np.float64)}, figures={"distinct_actions": distinct})
