"""The column "implicit" (K): what a second policy, which learns from pairs of episodes, rewards each turn with.

``heads/implicit_reward.py`` says how it learns. 0 for an empty reply, and everywhere in the first step.
"""

from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class ImplicitColumnConfig(ColumnConfig):
    name: Literal["implicit"] = "implicit"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if fault := run.agent.refuse_inner("rewards each turn by its reply"):
            return fault
        return None if run.implicit is not None else "a second policy gives: add a section [implicit]"

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if run.implicit is None:
            return None
        return "[implicit] has no effect: no stage of credit needs what it gives; leave it out"


@COLUMNS.register(ImplicitColumnConfig)
def implicit(step: PlayedStep, config: ImplicitColumnConfig) -> Supplied:
    """The rewards, and their standard deviation over turns."""
    head = step.learner.implicit
    assert head is not None, "a run without a second policy is refused"
    reward_K = np.zeros(len(step.batch.turn_K))
    reward_K[step.batch.tokens_K > 0] = np.concatenate(head.rewards(step.reading))
    return Supplied(columns={"implicit": reward_K}, figures={"implicit_std": float(reward_K.std())})
