"""The columns "guided" (K): 1 where a turn was drawn after a text that the learner does not read, else 0; and
"likelihood" (T): the policy's probability of each reply token after the prompt that the learner reads, before the
step's updates.
"""

from typing import Any, ClassVar, Literal

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class GuidedConfig(ColumnConfig):
    name: Literal["guided"] = "guided"
    gives: ClassVar[frozenset[str]] = frozenset({"guided", "likelihood"})

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        guidance = run.rollout.guidance
        if guidance is not None and guidance.reads == "plain":
            return None
        return (
            "says which turns were drawn after a text that the learner does not read, and there are none: set "
            'rollout.guidance, such as rollout.guidance = "hints", with reads = "plain"'
        )


@COLUMNS.register(GuidedConfig)
def guided(step: PlayedStep, config: GuidedConfig) -> Supplied:
    """Of each turn and each reply token, and the mean likelihood of the tokens of guided turns."""
    column_K = np.concatenate([np.full(len(episode.turns), float(_is_guided(episode))) for episode in step.episodes])
    likelihood_T = np.exp(step.reading.at_replies(step.reading.logprob).astype(np.float64))
    guided_T = column_K[step.batch.turn_of_T] > 0
    mean = float(likelihood_T[guided_T].mean()) if guided_T.any() else float("nan")
    return Supplied({"guided": column_K}, {"likelihood": likelihood_T}, {"guided_likelihood": mean})


def _is_guided(episode: Episode) -> bool:
    return episode.ledger is not None and episode.ledger.is_plain
