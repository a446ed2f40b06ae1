"""PCL: a value model predicts the success of tasks before they are played, and the nearest to a toss are played.

    prediction:  p(x) = sigmoid(w . x)          x: words of the task, of length 1
    drawn:       of the candidates those with the least |p - target|
    after step:  for each task played, a few times over:  w <- w - lr g / (1e-8 + sqrt(sum g^2)),
                 g = n (p - s) x,   s: share of its n episodes that reached the goal

Source: Prompt Curriculum Learning, arXiv 2510.01135, whose target this is.

Implementation:
1. The words of a task are its difficulty, its tags, and its params: each word of a text, each number, and each of both
   with the name of its param. They are hashed to 4,096 weights; steps are AdaGrad's.
2. Before the first feedback all predictions are equal, and tasks are drawn evenly.
3. It says something of tasks that were never played, if they share words with those that were. ``mopps`` remembers
   single tasks instead, and knows nothing of new ones.

Differences: their value model is a language model of the policy's size that reads the prompt; this one is a logistic
regression that reads what the prompt is made from, costs no pass of a model, and is part of the checkpoint.

Watch: ``groups_without_signal`` should be below that of the uniform curriculum; if it is not, the words of tasks do not
say how hard they are. ``success`` of a step is held near the target by design: held-out success shows learning.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from zlib import crc32

import numpy as np
from pydantic import Field

from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskFeedback, TaskPool
from manyturn.trainers.play.tasks.task_draws import distinct
from manyturn.trainers.play.tasks.task_memory import Row

WEIGHTS = 4096
PASSES = 5  # over a step's feedback
MOST_WORDS = 1000  # of a task


class PclConfig(StageConfig):
    name: Literal["pcl"] = "pcl"
    target: float = Field(default=0.5, ge=0, le=1)
    """Success that is looked for."""
    candidates: int = Field(default=4, ge=2)
    """Tasks whose success is predicted, for each task that is drawn."""
    lr: float = Field(default=0.3, gt=0)
    """Step size of the value model."""


@CURRICULA.register(PclConfig, remembers=True)
def pcl(pool: TaskPool, config: PclConfig, memory: Sequence[Row] | None) -> tuple[list[int], list[list[float]]]:
    """Numbers of the step's tasks; remembers rows of a weight's place, the weight, and its sum of squared gradients.

    Raises:
        ValueError: at the first step all candidates have the same words, so that nothing can be predicted.

    >>> tasks = [Task(str(n), "train", {"doors": n % 3}) for n in range(30)]
    >>> feedback = [TaskFeedback(n, "", (1.0, 0.5, 0.0)[n % 3], 0.0, 0.0, True, 8) for n in range(6)]
    >>> drawn, _ = pcl(TaskPool(tasks, 4, 0, 2, feedback), PclConfig(candidates=7), None)
    >>> {tasks[number].params["doors"] for number in drawn}
    {1}
    """
    weight, squares = np.zeros(WEIGHTS), np.zeros(WEIGHTS)
    for place, *values in memory or ():
        weight[int(place)], squares[int(place)] = values
    learn(weight, squares, [(features(pool.task(one.number)), one) for one in pool.feedback], config.lr)
    count = max(pool.count, min(config.candidates * pool.count, len(pool.tasks) - len(pool.taken)))
    numbers = distinct(pool.generator(), len(pool.tasks), count, pool.taken)
    candidates = [features(pool.tasks[number]) for number in numbers]
    if pool.step == 1 and len(numbers) > 1 and len({places.tobytes() for places in candidates}) == 1:
        raise ValueError(
            f"pcl predicts success from the words of tasks, but the first {len(numbers)} have the same: give tasks a "
            "difficulty, tags or params that differ, or take the curriculum mopps, which remembers single tasks"
        )
    distance = [abs(predicted(weight, places) - config.target) for places in candidates]
    drawn = [numbers[place] for place in np.argsort(distance, kind="stable")[: pool.count].tolist()]
    return drawn, [[place, weight[place], squares[place]] for place in np.flatnonzero(squares).tolist()]


def learn(
    weight: np.ndarray, squares: np.ndarray, feedback: Sequence[tuple[np.ndarray, TaskFeedback]], lr: float
) -> None:
    """Change weights and sums of squares, arrays of ``WEIGHTS``, by feedback with the places of its tasks' words."""
    for _ in range(PASSES):
        for places, one in feedback:
            gradient = one.episodes * (predicted(weight, places) - one.success) / np.sqrt(len(places))
            squares[places] += gradient**2
            weight[places] -= lr * gradient / (1e-8 + np.sqrt(squares[places]))


def predicted(weight: np.ndarray, places: np.ndarray) -> float:
    """Success of a task whose words have these places."""
    return float(1 / (1 + np.exp(-weight[places].sum() / np.sqrt(len(places)))))


def features(task: Task) -> np.ndarray:
    """Places of the weights of a task's words, from 0 to ``WEIGHTS`` - 1, each once; 0 is every task's."""
    words = [str(task.difficulty), *task.tags, *_words(task.params)]
    return np.unique([0, *(crc32(word.encode()) % WEIGHTS for word in words[:MOST_WORDS])])


def _words(value: Any, name: str = "") -> Iterator[str]:
    """Words of plain values, and each with the name of what it stands in."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _words(value[key], str(key))
    elif isinstance(value, str | int | float) or value is None:
        for word in re.findall(r"[\w.-]+", str(value).lower()):
            yield from (word, f"{name}={word}")
    else:
        for one in value:
            yield from _words(one, name)
