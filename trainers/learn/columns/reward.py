"""The column "reward" (T): what each reply token pays for its divergence from the reference policy.

    r_l = - coef KL_l        with objective.kl.place = "reward"; KL_l by the estimator of objective.kl

Both log-probabilities are those before the step's updates; coef is the present weight, which may adapt. ``kl.py`` says
more.
"""

from typing import Any, Literal

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied
from manyturn.trainers.learn.objective.kl import kl


class RewardColumnConfig(ColumnConfig):
    name: Literal["reward"] = "reward"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return None if _is_paid(run) else 'objective.kl charges: set objective.kl.place = "reward"'

    @classmethod
    def idle(cls, run: Any) -> str | None:
        if not _is_paid(run):
            return None
        return (
            f"objective.kl.place = 'reward' has no effect with {run.credit.advantage.name}: it takes no rewards of "
            "tokens; leave place out"
        )


def _is_paid(run: Any) -> bool:
    return run.objective.kl is not None and run.objective.kl.place == "reward"


@COLUMNS.register(RewardColumnConfig)
def reward(step: PlayedStep, config: RewardColumnConfig) -> Supplied:
    """The cost of each token, as a reward."""
    reading, learner = step.reading, step.learner
    options, coef, reference = learner.objective.kl, learner.memory.kl_coef, reading.reference
    assert options is not None and coef is not None and reference is not None, "the objective has no KL term"
    rows = zip(reading.logprob, reference, strict=True)
    costs = [coef * kl(ours, theirs, options.estimator) for ours, theirs in rows]
    return Supplied(token_columns={"reward": -reading.at_replies(costs)})
