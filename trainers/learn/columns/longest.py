"""The columns "longest_reply" and "longest_episode" (K): the most tokens that the run lets the policy say.

That of a reply is ``sampling.max_tokens``; that of an episode is so much for each of its most turns, or
``agent.max_context``, where that is less and the context holds the full episode.
"""

from typing import Literal

import numpy as np

from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class LongestConfig(ColumnConfig):
    name: Literal["longest"] = "longest"
    gives = frozenset({"longest_reply", "longest_episode"})


@COLUMNS.register(LongestConfig)
def longest(step: PlayedStep, config: LongestConfig) -> Supplied:
    """The same number at each turn."""
    turns = len(step.batch.turn_K)
    return Supplied({f"longest_{extent}": np.full(turns, float(most)) for extent, most in step.longest.items()})
