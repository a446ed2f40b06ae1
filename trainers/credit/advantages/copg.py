"""Contrastive policy gradient (CoPG): episodes against each other, by what they earned less what they departed.

    A_k = 1 / P sum over the other episodes j of k's task of (Rb_i - Rb_j) - n / P penalty_k        i: k's episode
    Rb_i = R_i - beta D_i        D_i = log pi(i) - log pi_ref(i), summed over all tokens that the policy said in i
    P: pairs of two episodes of one task, over all tasks;  n: episodes of k's task

Shapes: turns K -> advantage_K, for each token of the turn's reply.
Source: Contrastive Policy Gradient, arXiv 2406.19185. With one update a step this is the gradient of its loss,
-(R_i - R_j - beta / 2 (D_i - D_j)) (D_i - D_j), in the mean over pairs: the same as that of the squared loss
(R_i - R_j - beta (D_i - D_j))^2 / (2 beta), of which IPO, arXiv 2310.12036, is the case of preferences.

Implementation:
1. pi is the policy before the update, pi_ref the one at the end of the warm-up. Pairs of equal returns count too: they
   pull both episodes to the same distance from the reference.
2. It is right wherever episodes come from, since nothing in it asks for the policy that drew them.
3. D_i is of an episode: it grows with turns and tokens, and so does its price. Returns of about 1 ask for a beta well
   below 1 / D.
4. A task with one scorable episode gives 0. Truncated episodes count as they ended.

Differences: theirs is for one reply and learns offline from stored generations; an episode is the product of its turns
here, and pairs are all those of the step. The penalty is ours: it costs only its own turn.

Watch: ``pair_margin``, the mean of beta (D_w - D_l) over pairs in which w earned more: it comes to rest at R_w - R_l;
``pairs_ranked``, the share in which it is above 0. ``advantage_std`` rising while returns are equal: departures decide,
lower beta.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.episode_sums import group_E
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.groups.pairs import REFERENCE, PairConfig, pair_figures, pairs_inside
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class CopgConfig(PairConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["copg"] = "copg"
    beta: float = Field(default=0.01, gt=0)
    """Price of a departure from the reference policy, in units of the return for each nat of an episode."""


@ADVANTAGES.register(CopgConfig)
def copg(batch: TurnBatch, config: CopgConfig) -> Advantage:
    """Advantage of every turn.

    >>> batch = TurnBatch.from_episodes([[1], [0], [0]], groups=[0] * 3, columns={"reference": [[2], [0], [0]]})
    >>> copg(batch, CopgConfig(beta=0.1)).total_K.round(3)
    array([ 0.533, -0.267, -0.267])
    """
    task_E, return_E = group_E(batch), batch.episode_return_E()
    departure_E = np.zeros(len(return_E))
    np.add.at(departure_E, batch.episode_K, batch.column(REFERENCE))
    scorable_E = ~np.isnan(return_E)
    of_task = group_statistics(return_E - config.beta * departure_E, task_E, scorable_E)
    counted_E = np.where(scorable_E & (of_task.count_K > 1), of_task.count_K, 0)
    pairs = np.maximum((np.maximum(counted_E - 1, 0)).sum() / 2, 1)
    apart_E = counted_E * np.nan_to_num(return_E - config.beta * departure_E - of_task.mean_K) / pairs
    total_K = apart_E[batch.episode_K] - (counted_E / pairs)[batch.episode_K] * batch.penalty_K
    compared = pairs_inside(np.where(scorable_E, task_E, -1), np.arange(len(task_E)), np.nan_to_num(return_E))
    margin_P = config.beta * (departure_E[compared.better_P] - departure_E[compared.worse_P])
    return Advantage(total_K, {}, pair_figures(margin_P, (counted_E > 0)[batch.episode_K]))
