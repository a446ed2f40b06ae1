"""Information gain (IGPO): a turn earns what it adds to the policy's belief in the true answer.

    r_k^gain = weight (p_k - p_(k-1))        measure = "log":  weight (log p_k - log p_(k-1))
    0 at an episode's last turn, which gives the answer: its reward is the outcome

Shapes: parts K -> one more part K, "gain". The trainer supplies the column "belief": p_k, the probability of the true
answer after turn k, in the authors' work exp of the mean log-probability of its tokens after a fixed closing phrase.
Source: Information Gain-based Policy Optimization, arXiv 2510.14967, and the authors' code (GuoqingWang1/IGPO,
``scrl/llm_agent/generation.py``), whose default is the difference of probabilities.

Implementation:
1. The column "prior", the belief before the first turn, is used if it is there; without it a first turn gains nothing.
2. A belief that is not known (NaN) is skipped: the next known one is compared with the last.
3. Over all turns but the last the gains sum to belief minus prior, so that a detour earns nothing.
4. Unlike potential-based shaping the sum depends on where the episode ends: it does not preserve the optimal policy.

Differences: the code falls back to the outcome alone where turns and gains do not match in number; a column matches by
itself. The paper says information gain, the code's default is a difference of probabilities (``measure``).

Watch: ``belief`` should rise above ``prior``: the difference is what turns earn; equal, no turn adds anything, or the
prior is certain already. Rising without ``success``: beliefs grow and answers do not follow. ``groups_without_signal``
should be below that of the outcome alone; ``belief_seconds`` is what it costs.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.episode_sums import before_K, last_K, last_known_K
from manyturn.trainers.credit.batch.reward_parts import with_part
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class IgpoRewardConfig(StageConfig):
    order: ClassVar[int | None] = 40
    name: Literal["igpo"] = "igpo"
    needs: ClassVar[frozenset[str]] = frozenset({"belief"})
    adds: ClassVar[frozenset[str]] = frozenset({"gain"})
    measure: Literal["probability", "log"] = "probability"
    """What is compared: probabilities, or their logarithms."""
    weight: float = Field(default=1.0, gt=0)
    """Factor of the gains."""


@REWARDS.register(IgpoRewardConfig)
def igpo(batch: TurnBatch, config: IgpoRewardConfig) -> TurnBatch:
    """Add the gains.

    >>> columns = {"belief": [[0.25, 0.75, 0.5]], "prior": [[0.125] * 3]}
    >>> batch = TurnBatch.from_episodes([[0, 0, 1]], groups=[0], columns=columns)
    >>> igpo(batch, IgpoRewardConfig()).reward_K
    array([0.125, 0.5  , 1.   ])
    """
    unknown_K = np.full(len(batch.turn_K), np.nan)
    belief_K = _measured("belief", batch.column("belief"), config)
    prior_K = _measured("prior", batch.columns.get("prior", unknown_K), config)
    first_K = batch.turn_K == 0
    # The prior stands in for a first belief that is not known, so that later turns are compared with it.
    known_K = last_known_K(batch, np.where(first_K & np.isnan(belief_K), prior_K, belief_K))
    gain_K = np.nan_to_num(known_K - before_K(batch, known_K, prior_K), nan=0.0)
    return with_part(batch, "igpo", "gain", config.weight * np.where(last_K(batch), 0.0, gain_K))


def _measured(column: str, belief_K: FloatK, config: IgpoRewardConfig) -> FloatK:
    """The belief by the measure; the logarithm of 0 is not known."""
    wrong_K = (belief_K < 0) | (belief_K > 1)
    if wrong_K.any():
        raise ValueError(f"igpo: the column {column!r} holds {belief_K[wrong_K.argmax()]}, which is no probability")
    if config.measure == "probability":
        return belief_K
    return np.log(belief_K, where=belief_K > 0, out=np.full(len(belief_K), np.nan))
