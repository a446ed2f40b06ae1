"""LOOP: an episode's score against the mean of the others of its task, without those that say little.

    A_k = s_k - mean of the other n-1 scores        ``std``: divided by max(std_g s, 1e-7), ddof 0
    A_k = 0 where |A_k| < ``threshold``

Shapes: turns K -> advantage_K.
Source: LOOP, arXiv 2502.01600, section 3; numbers agree with the authors' code (apple/ml-loop,
``RLOOTrainer._compute_adv_estimates``).

Implementation:
1. A turn's score is its episode's return, less the turn's own penalty; every token of the turn gets its advantage.
2. The others are the scorable episodes of the group, each once; there is no standard deviation by default.
3. What is below the threshold becomes exactly 0.
4. Truncated episodes count as they ended: no critic says what would come.

Differences: the authors drop episodes of small advantage from the batch, rounded to the number of devices; here their
tokens get 0 and still count where the objective takes a mean. Their KL coefficient, 0 by default, adds a constant to
the advantage and is left out. The clip range [1/(1+eps), 1+eps] belongs to the objective.

Watch: ``groups_without_signal`` is the share of tasks that a step plays in vain, since nothing replaces them;
``advantage_std`` falls as groups agree.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.groups import GroupConfig, deviation, score_statistics
from manyturn.trainers.credit.stages import ADVANTAGES
from manyturn.trainers.credit.turn_batch import FloatK, TurnBatch

STD_FLOOR = 1e-7


class LoopConfig(GroupConfig):
    compares_returns_only: ClassVar[bool] = True
    name: Literal["loop"] = "loop"
    std: bool = False
    """Divide by the population standard deviation of the group's scores."""
    threshold: float = Field(default=0.01, ge=0)
    """Advantages nearer to 0 become 0; 0 keeps all."""


@ADVANTAGES.register(LoopConfig)
def loop(batch: TurnBatch, config: LoopConfig) -> FloatK:
    """Advantage of every turn.

    >>> batch = TurnBatch.from_episodes([[0, 3], [0], [0], [1]], groups=[0, 0, 0, 0])
    >>> loop(batch, LoopConfig(threshold=0.1))
    array([ 2.66666667,  2.66666667, -1.33333333, -1.33333333,  0.        ])
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
    return np.where(np.abs(advantage_K) < config.threshold, 0.0, advantage_K)
