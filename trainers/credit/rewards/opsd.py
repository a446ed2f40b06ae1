"""On-policy self-distillation (OPSD): a turn earns what a teacher who knows more would rather have said.

    r_k^teacher = weight E_k        over = "reply": E_k = e_k        over = "token": E_k = e_k / judged tokens of turn k
    e_k = sum over tokens of turn k of log pi(token | with advice) - log pi(token)

Shapes: parts K -> one more part K, "teacher". The trainer supplies the token column "teacher", the log-ratios in e_k.
Source: the reward of on-policy distillation, the negative reverse KL at what the student said, in the mean -KL(student,
teacher) of the turn: SDPO, arXiv 2601.20802, and AgentOPSD, arXiv 2608.05987, whose teacher is the same weights with
privileged text. TurnOPD, arXiv 2607.05804, normalises by turns, as ``over = "token"`` does.

Implementation:
1. Teacher and student are the same weights, so that a teacher who knows nothing pays nothing.
2. A token that no teacher judged (NaN) counts neither in the sum nor in the mean. A turn without a judged token makes
   its episode unscorable: paid 0, it would be better than every turn that the teacher would have said otherwise. An
   empty reply earns 0.
3. It does not preserve the optimal policy: where the advice is wrong it teaches the wrong thing, and a policy that says
   what it would say anyway earns 0 whatever the outcome.

Differences: theirs give each token its own ratio; here a turn earns their sum, or their mean, which an advantage of
turns can use. Left out: TurnOPD's depth of rollouts and its passage from tokens to turns.

Watch: ``teacher_gap``, the mean log-ratio of a token, should rise towards 0; ``success`` with it: the advice helps.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.reward_parts import with_part
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, REWARDS, StageConfig


class OpsdConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"teacher"})
    adds: ClassVar[frozenset[str]] = frozenset({"teacher"})
    order: ClassVar[int | None] = 41
    name: Literal["opsd"] = "opsd"
    over: Literal["token", "reply"] = "token"
    """Whether a turn earns the mean over its tokens, or their sum, which grows with the reply."""
    weight: float = Field(default=0.1, gt=0)
    """Factor of what the teacher pays."""

    def refuse_advantage(self, advantage: StageConfig) -> str | None:
        if not advantage.compares_returns_only:
            return None
        others = ADVANTAGES.names(lambda kind: kind.compares_returns_only is not True)
        return (
            f"{advantage.name} compares full returns, where {self.name} pays turns: take an advantage that separates "
            f"turns ({', '.join(others)}), or the modulation agentopsd"
        )


@REWARDS.register(OpsdConfig)
def opsd(batch: TurnBatch, config: OpsdConfig) -> TurnBatch:
    """Add what the teacher pays.

    >>> teacher = {"teacher": [[[1.0, 3.0], [-2.0]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0], tokens=[[2, 1]], token_columns=teacher)
    >>> opsd(batch, OpsdConfig(weight=0.5)).reward_K
    array([1., 0.])
    """
    ratio_T, turns = batch.token_column("teacher"), len(batch.turn_K)
    judged_K = np.bincount(batch.turn_of_T, ~np.isnan(ratio_T), turns)
    sum_K = np.bincount(batch.turn_of_T, np.nan_to_num(ratio_T), turns)
    paid_K = config.weight * (sum_K / np.maximum(judged_K, 1.0) if config.over == "token" else sum_K)
    return with_part(batch, "opsd", "teacher", np.where((judged_K == 0) & (batch.tokens_K > 0), np.nan, paid_K))
