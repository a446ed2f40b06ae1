"""The column "reference" (K): how much likelier each turn's reply has become than under the reference policy.

    D_k = sum over the tokens of reply k of log pi(token) - log pi_ref(token)

pi is the policy before the step's updates, as the learner reads it; pi_ref the policy at the end of the warm-up. 0 for
an empty reply, and everywhere in the first step. It costs a pass under the reference's weights, without gradient, which
a KL term shares.
"""

from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ReferenceColumnConfig(ColumnConfig):
    name: Literal["reference"] = "reference"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return None if run.objective.keeps_reference else "is of a reference policy: set objective.reference = true"

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if not run.objective.reference:
            return None
        return "objective.reference has no effect: no stage of credit compares with the reference policy; leave it out"


@COLUMNS.register(ReferenceColumnConfig)
def reference(step: PlayedStep, config: ReferenceColumnConfig) -> Supplied:
    """The sum over each reply."""
    reading, batch = step.reading, step.batch
    assert reading.reference is not None, "a run without a reference is refused"
    ratio_T = reading.at_replies(reading.logprob).astype(np.float64) - reading.at_replies(reading.reference)
    sum_K = np.bincount(batch.turn_of_T, ratio_T, len(batch.turn_K)).astype(np.float64, copy=False)
    return Supplied(columns={"reference": sum_K})
