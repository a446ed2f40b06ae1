"""The column "contribution" (K): what the progress estimator credits each turn with, out of the step's reading.

    column = weight x predicted contribution;  the weight is the column "contribution_weight";  trust = "full": 1
    trust = "explained":  weight = share, 0 where share < least_explained
    share = 1 - var(outcome - estimate) / var(outcome), over the step's episodes, none of which the estimator has learnt

Implementation:
1. The head ``progress`` is 0 everywhere at first, and learns in the updates from the outcomes of the step's episodes.
   With ``progress.body = "own"`` it has learnt from exploration before the first step, and is fixed.
2. The share is measured in every step, for a fixed estimator knows the policy less and less. Where all outcomes of a
   step are equal it cannot be measured, and that of the step before counts.
3. ``trust`` is ours: the authors pay what is predicted, however little that explains.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.decisions import Decisions
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.rewards.spa import WEIGHT
from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ContributionConfig(ColumnConfig):
    gives: ClassVar[frozenset[str]] = frozenset({"contribution", WEIGHT})
    name: Literal["contribution"] = "contribution"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return None if run.progress is not None else "an estimator predicts: add a section [progress]"

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if run.progress is None:
            return None
        return "[progress] has no effect: no stage of credit needs what it predicts; leave it out"


@COLUMNS.register(ContributionConfig, remembers=True)
def contribution(
    step: PlayedStep, config: ContributionConfig, memory: Mapping[str, Any] | None
) -> tuple[Supplied, dict[str, Any]]:
    """The estimator's contributions, how far they are from the outcomes, and how much of those they explain."""
    head, outcomes_E = step.learner.progress, outcome_E(step.batch)
    assert head is not None, "a run without an estimator is refused"
    estimate = head.estimate(step.reading.samples, step.reading.head_values(head.name), len(outcomes_E))
    from manyturn.trainers.learn.heads.heads import explained  # with torch, which a configuration does without

    share = explained(estimate.total_E, outcomes_E)
    share = (memory or {}).get("explained", 0.0) if share is None else share
    weight = trusted(head.config, share)
    figures = {
        "contribution_error": _unexplained(outcomes_E, estimate.total_E),
        "contribution_explained": share,
        WEIGHT: weight,
    }
    contribution_K = weight * estimate.contribution_K
    if step.batch.inner_K.any():
        contribution_K = Decisions.of(step.batch).summed(contribution_K)
    columns = {"contribution": contribution_K, WEIGHT: np.full(len(contribution_K), weight)}
    return Supplied(columns, figures=figures), {"explained": share}


def trusted(config: ProgressHeadConfig, share: float | None) -> float:
    """The weight of contributions that explain this share of the outcome's variance; None: it cannot be measured.

    >>> [trusted(ProgressHeadConfig(), share) for share in (-0.5, 0.05, 0.25)]
    [0.0, 0.0, 0.25]
    """
    if config.trust == "full":
        return 1.0
    return 0.0 if share is None or share <= 0 or share < config.least_explained else share


def _unexplained(outcomes_E: np.ndarray, total_E: np.ndarray) -> float:
    """Mean over scorable episodes of the distance between outcome and estimate."""
    missing_E = outcomes_E - total_E
    scorable_E = np.isfinite(missing_E)
    return float(np.abs(missing_E[scorable_E]).mean()) if scorable_E.any() else float("nan")
