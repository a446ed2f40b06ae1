"""Semantic entropy (SEED-GRPO): tasks whose members end in different answers move the policy less.

    A'_k = A_k f(alpha SE_g / log n_g)        f(x) = 1 - x (``linear``) or exp(-x) (``exponential``)
    SE_g = - sum over answers c of p_c log p_c,   p_c: share of the n_g episodes of task g that gave answer c

Shapes: (turns K, advantage_K) -> advantage_K. The column "action" numbers what each turn did.
Source: SEED-GRPO: Semantic Entropy Enhanced GRPO, arXiv 2505.12346, over semantic entropy, arXiv 2302.09664.

Implementation:
1. An episode's answer is its last action, which in questions is the answer; or with ``meaning = "actions"`` all that it
   did, in order. Equal texts mean the same, spaces around them apart.
2. n_g counts scorable episodes. One by itself, or members that all answer alike, leave the advantage as it is; members
   of n_g different answers weaken it most.
3. The advantage keeps its sign: alpha is at most 1.

Differences: the paper weighs answers by the probability of their replies, a Monte-Carlo estimate; here each episode
counts once, which is the discrete form. The paper compares answers of mathematics. There is no public code; that f is
linear, exponential or focal is from reviews of the paper, and their alpha is not known to us: 0.5 is ours, a third
party's implementation has 0.0417.

Watch: ``groups_without_signal`` too: where all fail with different answers, nothing is left to weaken.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.episode_sums import last_K
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch, ids_of
from manyturn.trainers.credit.stages import MODULATIONS, StageConfig


class SemanticEntropyConfig(StageConfig):
    order: ClassVar[int | None] = 11
    name: Literal["semantic_entropy"] = "semantic_entropy"
    weighs_by: ClassVar[str | None] = "answers"
    needs: ClassVar[frozenset[str]] = frozenset({"action"})
    alpha: float = Field(default=0.5, gt=0, le=1)
    """How much the greatest entropy takes."""
    falls: Literal["linear", "exponential"] = "linear"
    """Form in which weights fall with entropy."""
    meaning: Literal["last_action", "actions"] = "last_action"
    """What makes two episodes of a task mean the same."""


@MODULATIONS.register(SemanticEntropyConfig)
def semantic_entropy(batch: TurnBatch, advantage_K: FloatK, config: SemanticEntropyConfig) -> FloatK:
    """The advantage, weakened by task.

    The members of the first task give two answers, those of the second one.

    >>> actions = {"action": [[7], [8], [9], [9]]}
    >>> batch = TurnBatch.from_episodes([[1], [0], [1], [0]], groups=[0, 0, 1, 1], columns=actions)
    >>> semantic_entropy(batch, np.array([1.0, -1.0, 1.0, -1.0]), SemanticEntropyConfig())
    array([ 0.5, -0.5,  1. , -1. ])
    """
    entropy_K, count_K = _entropy(batch, _meaning(batch, config.meaning))
    share_K = config.alpha * entropy_K / np.log(np.maximum(count_K, 2))
    return advantage_K * (1 - share_K if config.falls == "linear" else np.exp(-share_K))


def _meaning(batch: TurnBatch, meaning: str) -> IntK:
    """A number (K) that is equal at turns of episodes that mean the same."""
    order_K, action_K = np.lexsort((batch.turn_K, batch.episode_K)), batch.column("action")
    rows = np.split(order_K, np.cumsum(np.bincount(batch.episode_K))[:-1])
    ends = [row[-1:] for row in rows] if meaning == "last_action" else rows
    return ids_of(tuple(action_K[row].tolist()) for row in ends)[batch.episode_K]


def _entropy(batch: TurnBatch, meaning_K: IntK) -> tuple[FloatK, IntK]:
    """Entropy of the answers of the turn's task, in nats, and number of its scorable episodes (K each)."""
    counted_K = last_K(batch) & batch.scorable_K
    _, task_K = np.unique(batch.group_K, return_inverse=True)
    _, cluster_K = np.unique(np.stack([task_K, meaning_K]), axis=1, return_inverse=True)
    size_C = np.bincount(cluster_K[counted_K], minlength=int(cluster_K.max()) + 1)
    count_G = np.bincount(task_K[counted_K], minlength=int(task_K.max()) + 1)
    shares = size_C[cluster_K[counted_K]] / count_G[task_K[counted_K]]
    surprise_G = np.bincount(task_K[counted_K], -np.log(shares), len(count_G))
    return (surprise_G / np.maximum(count_G, 1))[task_K], count_G[task_K]
