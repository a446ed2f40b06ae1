"""Tasks by how open their success is, tracked from step to step (SPO's sampling).

    weight_g = sqrt(v_g (1 - v_g)) + exploration        v_g = alpha_g / (alpha_g + beta_g)
    alpha_g <- rho alpha_g + successes,  beta_g <- rho beta_g + failures;  both 1/2 at first

Source: Single-stream Policy Optimization, arXiv 2509.13232; weights agree with the authors' code (``task_weights`` of
the advantage ``spo``).

Implementation:
1. Each task is drawn at most once in a step.
2. A task never played has the largest weight of all, so that this matters where tasks come again.
3. What is forgotten is always the same share (``rho``), because a curriculum does not see how far the policy has moved.
4. It counts successes, the advantage ``spo`` returns: the two memories are apart.

Differences: the authors draw with the values of the advantage itself, which begin with 8 episodes of each task from the
first policy.

Watch: ``success`` of a step is drawn towards 1/2 by design: held-out success shows learning. It stays with
``advantage_std`` where all tasks are new.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from manyturn.trainers.credit.advantages.spo import RHO_MAX, task_weights
from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.play.tasks.task_draws import distinct
from manyturn.trainers.play.tasks.task_memory import Row, recalled, remembered


class SpoWeightsConfig(StageConfig):
    name: Literal["spo_weights"] = "spo_weights"
    exploration: float = Field(default=0.05, gt=0)
    """Weight of a task that always or never succeeds."""
    rho: float = Field(default=RHO_MAX, gt=0, lt=1)
    """Share of what is remembered of a task that is kept when it is played again."""


@CURRICULA.register(SpoWeightsConfig, remembers=True)
def spo_weights(
    pool: TaskPool, config: SpoWeightsConfig, memory: Sequence[Row] | None
) -> tuple[Sequence[int], list[list[float]]]:
    """Numbers of the step's tasks; remembers rows of number, alpha and beta.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train") for n in range(3)]
    >>> from manyturn.trainers.play.tasks.curriculum_input import TaskFeedback
    >>> found = TaskFeedback(number=2, label="", success=1.0, score=1.0, advantage=0.0, signal=False, episodes=8)
    >>> drawn, memory = spo_weights(TaskPool(tasks, 2, 0, 1, [found]), SpoWeightsConfig(), [[0, 3.0, 1.0]])
    >>> sorted(drawn), [[round(number, 3) for number in row] for row in memory]
    ([0, 1], [[0, 3.0, 1.0], [2, 8.48, 0.48]])
    """
    pair_of = recalled(memory, len(pool.tasks))
    news = {}
    for feedback in pool.feedback:
        alpha, beta = pair_of.get(feedback.number, (0.5, 0.5))
        wins = feedback.success * feedback.episodes
        news[feedback.number] = [config.rho * alpha + wins, config.rho * beta + feedback.episodes - wins]
    memory = remembered(pair_of, news)
    pairs = {str(int(number)): [alpha, beta] for number, alpha, beta in memory if number not in pool.taken}
    *weights, fresh = task_weights(pairs, [*pairs, "never played"], config.exploration)
    return _draw(
        pool, {int(number) for number, *_ in memory}, [int(n) for n in pairs], np.array(weights), fresh
    ), memory


def _draw(
    pool: TaskPool, played: set[int], numbers: list[int], weight_N: NDArray[np.float64], fresh: float
) -> list[int]:
    """One task after the other, in proportion to the weights of those left, without listing those never played.

    Args:
        played: numbers of all tasks that are remembered.
        numbers: the N of them that may be drawn.
        weight_N: their weights.
        fresh: weight of each task that was never played.
    """
    rng, size, without = pool.generator(), len(pool.tasks), pool.taken | played
    # Drawn one by one in proportion to their weights, things come in the order of exponential times divided by them.
    order = np.argsort(rng.exponential(size=len(numbers)) / weight_N).tolist()
    mass, unknown, drawn = float(weight_N.sum()), size - len(without), list[int]()
    while len(drawn) < pool.count and (order or unknown > 0):
        if order and (unknown <= 0 or rng.uniform() * (mass + fresh * unknown) < mass):
            place = order.pop(0)
            mass -= float(weight_N[place])
            drawn.append(numbers[place])
        else:
            unknown -= 1
            drawn += distinct(rng, size, 1, without.union(drawn))
    return drawn + distinct(rng, size, pool.count - len(drawn))
