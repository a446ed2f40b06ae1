"""The column "contribution" (K): what the progress estimator credits each turn with, out of the step's reading.

The head ``progress`` is 0 everywhere at first, and learns in the updates from the outcomes of the step's episodes. With
``progress.body = "own"`` it has learnt from exploration before the first step, and is fixed.
"""

from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ContributionConfig(ColumnConfig):
    name: Literal["contribution"] = "contribution"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return None if run.progress is not None else "an estimator predicts: add a section [progress]"

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if run.progress is None:
            return None
        return "[progress] has no effect: no stage of credit needs what it predicts; leave it out"


@COLUMNS.register(ContributionConfig)
def contribution(step: PlayedStep, config: ContributionConfig) -> Supplied:
    """The estimator's contributions, and how far they are from the outcomes."""
    contribution_K = np.concatenate(step.reading.said_by("progress")).astype(np.float64)
    figures = {"contribution_error": _unexplained(step.batch, contribution_K)}
    return Supplied(columns={"contribution": contribution_K}, figures=figures)


def _unexplained(batch: TurnBatch, contribution_K: FloatK) -> float:
    """Mean over scorable episodes of how far the contributions of its turns are from adding up to the outcome."""
    missing_E = outcome_E(batch) - np.bincount(batch.episode_K, contribution_K, len(batch.truncated_E))
    known_E = np.isfinite(missing_E)
    return float(np.abs(missing_E[known_E]).mean()) if known_E.any() else float("nan")
