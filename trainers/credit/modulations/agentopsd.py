"""AgentOPSD: turns weigh more where a teacher who knows more revises the belief in success the way it came out.

    A'_k = A_k ((1 - mix) + mix w_k)        w_k = clip(1 + band sign(A_k) z_k, 1 - band, 1 + band)
    z_k: B_k - B_(k-1), less its mean over the turns of the episode and over its standard deviation (ddof 0)
    B_k = sigmoid(logit(B_0) + c_k)         c_k = decay c_(k-1) + e_k
    e_k = sum over tokens of turn k of log pi(token | with advice) - log pi(token)
    B_0: mean outcome of the task's episodes

Shapes: (turns K, advantage_K) -> advantage_K. The trainer supplies the token column "teacher", the log-ratios in e_k.
Source: AgentOPSD: Recursive Self-Distillation for Agentic Reinforcement Learning, arXiv 2608.05987; numbers agree with
the authors' code (ZethWang/AgentOPSD, ``compute_opsd_turn_advantage`` with ``belief_mult`` and ``signed``).

Implementation:
1. Evidence that changes nothing any more, for the belief is near 0 or 1 already, weighs little; ``decay`` forgets.
2. The sign of A_k stays as the outcome decides it: the teacher chooses only which turns carry it.
3. B_0 is held to 1e-4 from 0 and 1; outcomes are taken for shares of success, so give them in 0 to 1.
4. A token that no teacher judged (NaN) is no evidence. Turns of an unscorable episode are left alone.

Differences: their teacher reads skills that were retrieved from a bank; ours reads what the environment knows, the
expert's next action or the true answer (``columns.teacher.advice``). Left out: their mixing weight that falls over the
steps, and the other variants of their code.

Watch: ``teacher_gap``, the mean log-ratio: near 0, advice changes nothing, and weights are of noise: is the policy able
to read it? Well below 0, the policy does otherwise than the advice.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.episode_sums import before_K
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch
from manyturn.trainers.credit.groups.group_statistics import counted, group_statistics
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig

EPS, SURE = 1e-6, 1e-4


class AgentopsdConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"teacher"})
    weighs_by: ClassVar[str | None] = "evidence"
    order: ClassVar[int | None] = 10
    name: Literal["agentopsd"] = "agentopsd"
    mix: float = Field(default=0.5, gt=0, le=1)
    """How much of the advantage is weighed; 0 would leave it alone."""
    band: float = Field(default=0.2, gt=0, lt=1)
    """How far a weight may be from 1."""
    decay: float = Field(default=0.95, ge=0, le=1)
    """What evidence of a turn counts for in the next one."""


@MODULATIONS.register(AgentopsdConfig)
def agentopsd(batch: TurnBatch, advantage_K: FloatK, config: AgentopsdConfig) -> FloatK:
    """The advantage, weighted.

    The second turn of the success raised the belief, the first one hardly.

    >>> teacher = {"teacher": [[[0.1], [2.0]], [[0.5], [-1.0]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], groups=[0, 0], token_columns=teacher)
    >>> agentopsd(batch, np.array([1.0, 1.0, -1.0, -1.0]), AgentopsdConfig()).round(3)
    array([ 0.9,  1.1, -0.9, -1.1])
    """
    prior_K, support_K = _prior(batch), _support(batch, evidence(batch), config.decay)
    belief_K = np.clip(1 / (1 + np.exp(-(np.log(prior_K / (1 - prior_K)) + support_K))), EPS, 1 - EPS)
    revision_K = belief_K - before_K(batch, belief_K, prior_K)
    count_K = np.bincount(batch.episode_K)[batch.episode_K]
    mean_K = np.bincount(batch.episode_K, revision_K)[batch.episode_K] / count_K
    square_K = np.bincount(batch.episode_K, (revision_K - mean_K) ** 2)[batch.episode_K] / count_K
    z_K = (revision_K - mean_K) / (np.sqrt(square_K) + EPS)
    weight_K = np.clip(1 + config.band * np.sign(advantage_K) * z_K, 1 - config.band, 1 + config.band)
    return advantage_K * np.where(batch.scorable_K, 1 - config.mix + config.mix * weight_K, 1.0)


def evidence(batch: TurnBatch) -> FloatK:
    """Sum over the tokens of each turn (K) of the teacher's log-ratios, as far as they are known."""
    ratio_T = np.nan_to_num(batch.token_column("teacher"))
    return np.bincount(batch.turn_of_T, ratio_T, len(batch.turn_K)).astype(np.float64, copy=False)


def _prior(batch: TurnBatch) -> FloatK:
    """Mean outcome (K) of the episodes of the turn's task."""
    outcome_K = outcome_E(batch)[batch.episode_K]
    mean_K = group_statistics(outcome_K, batch.group_K, counted(batch, "episodes") & ~np.isnan(outcome_K)).mean_K
    return np.clip(mean_K, SURE, 1 - SURE)


def _support(batch: TurnBatch, evidence_K: FloatK, decay: float) -> FloatK:
    """Evidence so far (K): of a turn and those before it, weakened by their distance."""
    backwards_K = np.bincount(batch.episode_K)[batch.episode_K] - 1 - batch.turn_K
    return Timeline.of(batch.episode_K, backwards_K).to_go(evidence_K, decay)
