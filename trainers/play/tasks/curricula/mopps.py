"""MoPPS: the success of each task is predicted, and tasks whose prediction is nearest to a toss are played.

    prediction:  p_g ~ Beta(a_g, b_g), drawn anew for each step (Thompson sampling);  a_g = b_g = 1 at first
    drawn:       of the candidates those with the least (p_g - target)^2
    after step:  a_g <- decay a_g + (1 - decay) + s_g n_g,   b_g <- decay b_g + (1 - decay) + (1 - s_g) n_g
    s_g: share of the n_g episodes of task g that reached the goal

Source: Model Predictive Prompt Selection, arXiv 2507.04632; as the authors' code (thu-rllab/MoPPS,
``recipe/ours/mopps.py``, ``topk``), whose target, prior and decay these are.

Implementation:
1. Candidates are 16 for each task to be drawn, or all tasks if there are fewer. Those never played have a flat
   prediction, so that they come now and then.
2. A decay below 1 forgets what an older policy could do.
3. What is remembered is bounded to 10,000 tasks.

Differences: theirs draws candidates in the order of an epoch; here they are drawn anew, without repetition in a step.
Their threshold strategy is the curriculum ``band`` in another form.

Watch: ``groups_without_signal`` should be below that of the uniform curriculum; ``success`` of a step is held near the
target by design: held-out success shows learning.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.play.tasks.task_draws import CANDIDATES, distinct
from manyturn.trainers.play.tasks.task_memory import Row, recalled, remembered

PRIOR = 1.0


class MoppsConfig(StageConfig):
    name: Literal["mopps"] = "mopps"
    target: float = Field(default=0.5, ge=0, le=1)
    """Success that is looked for."""
    decay: float = Field(default=1.0, gt=0, le=1)
    """What earlier episodes of a task count for when it is played again."""


@CURRICULA.register(MoppsConfig, remembers=True)
def mopps(pool: TaskPool, config: MoppsConfig, memory: Sequence[Row] | None) -> tuple[list[int], list[list[float]]]:
    """Numbers of the step's tasks; remembers rows of number, a and b.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train") for n in range(8)]
    >>> sure = [[n, *((500.0, 500.0) if n in (2, 5) else (1000.0, 1.0))] for n in range(8)]
    >>> sorted(mopps(TaskPool(tasks, 2, 0, 1), MoppsConfig(), sure)[0])
    [2, 5]
    """
    pairs, news = recalled(memory, len(pool.tasks)), dict[int, Row]()
    for feedback in pool.feedback:
        a, b = pairs.get(feedback.number, (PRIOR, PRIOR))
        prior, reached = (1 - config.decay) * PRIOR, feedback.success * feedback.episodes
        news[feedback.number] = [
            config.decay * a + prior + reached,
            config.decay * b + prior + feedback.episodes - reached,
        ]
    memory = remembered(pairs, news)

    pairs = recalled(memory, len(pool.tasks))
    rng, size = pool.generator(), len(pool.tasks)
    count = max(pool.count, min(CANDIDATES * pool.count, size - len(pool.taken)))
    numbers = distinct(rng, size, count, pool.taken)
    beta = np.array([pairs.get(number, (PRIOR, PRIOR)) for number in numbers]).reshape(-1, 2)
    distance = np.square(rng.beta(beta[:, 0], beta[:, 1]) - config.target)
    return [numbers[place] for place in np.argsort(distance, kind="stable")[: pool.count].tolist()], memory
