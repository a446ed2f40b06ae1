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
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.draws import draw_values, draws
from manyturn.trainers.credit.groups.group_statistics import group_statistics
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
