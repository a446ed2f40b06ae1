"""LOOP: an episode's score against the mean of the others of its task, without those that say little.

    A_k = s_k - mean of the other n-1 scores        ``std``: divided by max(std_g s, 1e-7), ddof 0
    A_k = 0 where |A_k| < ``threshold``; an episode of which that holds at every turn is not learnt from

Shapes: turns K -> advantage_K.
Source: LOOP, arXiv 2502.01600, section 3; numbers agree with the authors' code (apple/ml-loop,
``RLOOTrainer._compute_adv_estimates``).

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. The others are the scorable episodes of the group, each once; there is no standard deviation by default.
3. What is below the threshold becomes exactly 0. An episode of which nothing else is left is dropped: it is in no
   minibatch and counts in no mean, so that those that say something weigh more.
4. Truncated episodes count as they ended: no critic says what would come.

Differences: the authors round the number of episodes that stay up to the number of devices, and keep one in any case;
they divide the last minibatch, which may be smaller, by the size of the others. Their KL coefficient, 0 by default,
adds a constant to the advantage and is left out. The clip range [1/(1+eps), 1+eps] belongs to the objective, the stop
at a large divergence to the learner (``stop_kl``).

Watch: ``groups_without_signal`` is the share of tasks that a step plays in vain, since nothing replaces them;
``left_out_episodes`` is that of episodes, with those near their task's mean; ``advantage_std`` falls as groups agree.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.group_statistics import GroupConfig, deviation, score_statistics
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage

STD_FLOOR = 1e-7


class LoopConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["loop"] = "loop"
    std: bool = False
    """Divide by the population standard deviation of the group's scores."""
    threshold: float = Field(default=0.01, ge=0)
    """Advantages nearer to 0 become 0, and an episode without another one is left out of the update; 0 keeps all."""


@ADVANTAGES.register(LoopConfig)
def loop(batch: TurnBatch, config: LoopConfig) -> Advantage:
    """Advantage of every turn.

    >>> batch = TurnBatch.from_episodes([[0, 3], [0], [0], [1]], groups=[0, 0, 0, 0])
    >>> result = loop(batch, LoopConfig(threshold=0.1))
    >>> result.total_K.round(2), result.kept_E
    (array([ 2.67,  2.67, -1.33, -1.33,  0.  ]), array([ True,  True,  True, False]))
    """
    score_K = batch.score_K()
    statistics = score_statistics(batch, batch.group_K, config.stats_over)
    others_K = np.maximum(statistics.count_K - 1, 1)
    factor_K = np.where(statistics.count_K > 1, statistics.count_K / others_K, 1.0)
    advantage_K = factor_K * deviation(score_K, statistics, config.singleton)
    if config.std:
        population_K = statistics.std_K / np.sqrt(factor_K)
        # A group without spread deviates by penalties alone, which must not be divided by the floor.
        advantage_K = advantage_K / np.where(statistics.std_K > 0, np.maximum(population_K, STD_FLOOR), 1.0)
    said_K = np.abs(advantage_K) >= config.threshold
    kept_E = np.bincount(batch.episode_K, said_K, len(batch.truncated_E)) > 0
    return Advantage(np.where(said_K, advantage_K, 0.0), kept_E=kept_E)
