"""Rubrics: criteria with weights and gates, and the one number that their verdicts come to.

    score = sum of w_c v_c / sum of w_c  over the criteria without a gate;  1 where there are none
    score = 0                            where a gate is below 1/2

    v_c: verdict on criterion c, 0 to 1;  w_c: its weight

Source: rubrics as rewards, arXiv 2507.17746 (the weighted mean of criteria that are judged one by one). The gate is
G-RA's idea, arXiv 2510.02837: nothing counts where the essential is missing.

Implementation:
1. A verdict that is missing on one criterion makes the score NaN: the mean of the rest is another number.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.trainers.play.judges.rule import RULES

Scores = NDArray[np.float64]  # of an episode: one for each of its K turns, or one for all of it
VoteRule = Literal["mean", "majority", "intersection"]


class CriterionConfig(Options):
    """One criterion of a rubric."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Small letters, digits and underscores."""
    rule: Annotated[Any, RULES.optional_field] = None
    """Rule that decides it: expert, valid, repetition, phrase, reward_part, or a plugin's."""
    question: str = Field(default="", max_length=2000)
    """Question that an endpoint is asked instead, so that yes is good."""
    weight: float = Field(default=1.0, gt=0)
    """Weight in the mean over criteria; without effect on a gate."""
    gate: bool = False
    """The score is 0 where this is below a half."""


def vote(votes_VN: Scores, how: VoteRule) -> Scores:
    """The verdict of V votes on each of N turns; NaN where a vote is missing.

    ``intersection`` finds fault only where all votes do.

    >>> votes = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> [vote(votes, how).round(2).tolist() for how in ("mean", "majority", "intersection")]
    [[0.67, 0.33, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    if how == "mean":
        return votes_VN.mean(0)
    if how == "intersection":
        return votes_VN.max(0)
    share_N = (votes_VN >= 0.5).mean(0)
    majority_N = np.where(share_N > 0.5, 1.0, np.where(share_N < 0.5, 0.0, 0.5))
    return np.where(np.isnan(votes_VN).any(0), np.nan, majority_N)


def rubric_score(values: Mapping[str, Scores], criteria: Sequence[CriterionConfig]) -> Scores:
    """The score of each place.

    >>> criteria = [CriterionConfig(name="a", weight=3), CriterionConfig(name="b")]
    >>> criteria += [CriterionConfig(name="c", gate=True)]
    >>> rubric_score({"a": np.ones(3), "b": np.zeros(3), "c": np.array([1, 0, np.nan])}, criteria)
    array([0.75, 0.  ,  nan])
    """
    weighed = [criterion for criterion in criteria if not criterion.gate]
    total = sum(criterion.weight for criterion in weighed)
    some = next(iter(values.values()))
    score = sum((c.weight / total * values[c.name] for c in weighed), np.zeros(len(some))) if weighed else 1.0
    for gate in (criterion for criterion in criteria if criterion.gate):
        opened = np.where(np.isnan(values[gate.name]), np.nan, (values[gate.name] >= 0.5).astype(float))
        score = score * opened
    return np.asarray(score, np.float64)
