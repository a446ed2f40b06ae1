"""Forks: a turn against its siblings, which were drawn from the very same past (branching rollouts).

    A_k = Q(d) - mean of Q over the other siblings of d - penalty_k          baseline = "others"
    A_k = Q(d) - mean of Q over all siblings of d       - penalty_k          baseline = "all"
    d: the last draw of k's episode, up to k, that has siblings;  siblings: draws with one and the same past
    Q(d) = r_d + gamma mean of Q over the draws that follow d;  0 after the end

Shapes: turns K -> advantage_K.
Source: Branching Policy Optimization, arXiv 2607.14171 (siblings of a snapshot, leave-one-out); C3, arXiv 2603.06859
(counterfactual replies from one transcript, leave-one-out, whose baselines in EIT-EAST-Lab/C3 are those of
``tests/golden``); VinePPO, arXiv 2410.01679 (values by continuations, here at turns); Tree-GRPO, arXiv 2509.21240.

Implementation:
1. A draw is a reply that the policy drew. A branch repeats the draws of its parent up to its fork: those are no draws
   of its own. The column "drawer" says who drew each turn; ``rollout.branching`` makes the branches.
2. Q is the mean over what follows, not over episodes: a draw behind which much was forked counts no more for it.
3. Turns after a fork inherit its comparison until the next fork, or get 0 with ``between = "zero"``. Before anything
   forks, first turns of a group are siblings, as all start from one reset: without branches this is RLOO.
4. A draw is learnt from once, in the episode that drew it; its repetitions in branches get 0.
5. With "others" the baseline of a turn does not depend on its own draw, so that the estimate is unbiased where what
   forks is chosen without looking at outcomes.
6. Every token of a turn gets the turn's advantage. Truncated episodes count as they ended. Unscorable ones are left out
   of Q, and a draw that leads to nothing else gets 0.

Differences: BPO forks a sandbox from a snapshot at turns of high entropy, M times into K; here branches replay actions,
which costs the environment time and no token, ``rollout.branching`` chooses by entropy or by chance, and its
``siblings`` is their K - 1. Their propagation to turns before a fork is rule 2. C3 replaces messages of cooperating
models; Tree-GRPO adds a comparison over all episodes of the task and divides both by standard deviations. No code of
BPO is public.

Watch: ``compared_draws``, the share of draws with siblings, first turns included; ``drawn_tokens``, what it costs: what
branches repeat is not in it; ``success`` going to and fro: the advantages of a minibatch of few episodes do not sum to
0, and one update a step is steadier. ``repeated_turns``: they are read by the learner all the same.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.episode_sums import last_known_K
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, IntK, TurnBatch
from manyturn.trainers.credit.groups.anchors import equal_anchors
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.groups.situations import paired, previous_row
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig


class ForksConfig(StageConfig):
    needs: ClassVar[frozenset[str]] = frozenset({"drawer"})
    compares_groups: ClassVar[bool] = True
    name: Literal["forks"] = "forks"
    baseline: Literal["others", "all"] = "others"
    """What a draw is compared with: the other siblings, or all of them, itself included."""
    between: Literal["inherit", "zero"] = "inherit"
    """What turns without siblings get: the comparison of the last fork before them, or 0."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per turn."""


@ADVANTAGES.register(ForksConfig)
def forks(batch: TurnBatch, config: ForksConfig) -> Advantage:
    """Advantage of every turn.

    The second episode is a branch of the first: it repeats its first turn, draws the second again, and fails. The third
    begins by itself, and fails. First turns: (1 + 0) / 2 against 0; second turns: 1 against 0.

    >>> columns = {"drawer": [[0, 0], [0, 1], [2]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0], [0]], groups=[0, 0, 0], columns=columns)
    >>> forks(batch, ForksConfig()).total_K
    array([ 0.5,  1. ,  0. , -1. , -0.5])
    """
    past_K, draw_K, own_K = draws(batch)
    value_K = draw_values(batch, past_K, draw_K, config.gamma)
    counted_K = own_K & ~np.isnan(value_K)
    siblings = group_statistics(np.nan_to_num(value_K), past_K, counted_K)
    others_K = siblings.count_K - 1
    factor_K = siblings.count_K / np.maximum(others_K, 1) if config.baseline == "others" else 1.0
    compared_K = np.where(others_K > 0, factor_K * (value_K - siblings.mean_K), np.nan)
    if config.between == "inherit":
        compared_K = last_known_K(batch, compared_K)
    total_K = np.where(own_K, np.nan_to_num(compared_K) - batch.penalty_K, 0.0)
    figures = {"compared_draws": float((others_K[counted_K] > 0).mean()) if counted_K.any() else 0.0}
    return Advantage(np.where(batch.scorable_K, total_K, 0.0), {}, figures)


def draws(batch: TurnBatch) -> tuple[IntK, IntK, BoolK]:
    """Numbers (K) of the past that each turn was drawn from and of its draw, and whether its episode drew it.

    An episode draws its last turn itself, which tells its own number.

    >>> batch = TurnBatch.from_episodes([[0, 0], [0, 0]], [0, 0], columns={"drawer": [[0, 0], [0, 1]]})
    >>> draws(batch)
    (array([0, 1, 0, 1]), array([0, 1, 0, 2]), array([ True,  True, False,  True]))
    """
    drawer_K = batch.column("drawer").astype(np.int64)
    order_K = np.lexsort((batch.turn_K, batch.episode_K))
    ends_E = order_K[np.append(np.flatnonzero(np.diff(batch.episode_K[order_K])), len(order_K) - 1)]
    before_K = previous_row(batch)
    past_K = equal_anchors(batch.group_K, np.zeros(len(order_K), np.int64))
    draw_K = paired(past_K, drawer_K)
    for turn in range(1, int(batch.turn_K.max()) + 1):
        rows = np.flatnonzero(batch.turn_K == turn)
        # Numbers of pasts and draws of a turn begin above those of the turn before.
        past_K[rows] = len(order_K) * turn + draw_K[before_K[rows]] % len(order_K)
        draw_K[rows] = len(order_K) * turn + paired(past_K[rows], drawer_K[rows])
    past_K, draw_K = (equal_anchors(batch.group_K, number_K) for number_K in (past_K, draw_K))
    return past_K, draw_K, drawer_K == drawer_K[ends_E][batch.episode_K]


def draw_values(batch: TurnBatch, past_K: IntK, draw_K: IntK, gamma: float) -> FloatK:
    """Q (K) of each turn's draw; NaN where no scorable episode goes through it."""
    value_K, after_K = np.full(len(past_K), np.nan), np.full(len(past_K), np.nan)
    before_K = previous_row(batch)
    for turn in range(int(batch.turn_K.max()), -1, -1):
        rows = np.flatnonzero((batch.turn_K == turn) & batch.scorable_K)
        rest_K = np.where(np.isnan(after_K[rows]), 0.0, after_K[rows])
        value_K[rows] = batch.reward_K[rows] + gamma * rest_K
        # One value of each draw, and their mean for the draw before.
        _, first, number = np.unique(draw_K[rows], return_index=True, return_inverse=True)
        value_K[rows] = value_K[rows][first][number]
        if turn and len(rows):
            _, place = np.unique(past_K[rows][first], return_inverse=True)
            mean = np.bincount(place, value_K[rows][first]) / np.bincount(place)
            after_K[before_K[rows]] = mean[place][number]
    return value_K
