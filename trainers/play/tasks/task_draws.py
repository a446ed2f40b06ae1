"""Ways to draw tasks without listing a long split."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyturn.envs.contract.tasks.mixed_tasks import numbers_by_env
from manyturn.trainers.play.tasks.curriculum_input import TaskPool, label_of

CANDIDATES = 16  # for each task to be drawn


def distinct(rng: np.random.Generator, size: int, count: int, without: Collection[int] = ()) -> list[int]:
    """``count`` different numbers from 0 to size - 1, none of ``without``; if too few are left, all come again.

    >>> sorted(distinct(np.random.default_rng(0), 4, 3, without={2})), len(distinct(np.random.default_rng(0), 4, 6))
    ([0, 1, 3], 6)
    """
    if count >= size - len(without):
        rest = rng.permutation([n for n in range(size) if n not in without]).astype(int).tolist()
        return rest + (distinct(rng, size, count - len(rest)) if count > len(rest) else [])
    drawn = dict[int, None]()
    while len(drawn) < count:
        number = int(rng.integers(size))
        if number not in without:
            drawn[number] = None
    return list(drawn)


def softmax(score_N: ArrayLike) -> NDArray[np.float64]:
    """Probabilities in proportion to exp(score).

    >>> softmax([0.0, np.log(3.0)])
    array([0.25, 0.75])
    """
    raised_N = np.exp(np.asarray(score_N) - np.max(score_N))
    return raised_N / raised_N.sum()


def draw_by_label(pool: TaskPool, scores: Callable[[Sequence[str]], ArrayLike]) -> list[int]:
    """Draw a label for each task by the softmax of its score, then a task that has it; each task at most once.

    The labels are those of some candidates, 16 for each task to be drawn, or all if there are fewer. A label whose
    candidates are used up gives its share to the others.

    Args:
        scores: labels -> a score each.

    Raises:
        ValueError: at the first step all candidates have one label, so that there is nothing to choose between.
    """
    rng, size, waiting = pool.generator(), len(pool.tasks), defaultdict[str, list[int]](list)
    if pool.is_mixed:  # as many candidates of each environment, however many tasks it has
        for env, numbers in numbers_by_env(pool.tasks).items():
            taken = {numbers.index(number) for number in pool.taken if number in numbers}
            waiting[str(env)] = [numbers[place] for place in distinct(rng, len(numbers), pool.count, taken)]
        return _drawn(pool, waiting, scores, rng)
    candidates = max(pool.count, min(CANDIDATES * pool.count, size - len(pool.taken)))
    for number in distinct(rng, size, candidates, pool.taken):
        waiting[label_of(pool.tasks[number])].append(number)
    if len(waiting) == 1 and pool.step == 1:
        raise ValueError(
            f"this curriculum chooses between kinds of tasks, but the first {candidates} are all "
            f"{next(iter(waiting))!r}: give tasks a difficulty or tags, or take the curriculum uniform"
        )
    return _drawn(pool, waiting, scores, rng)


def _drawn(
    pool: TaskPool,
    waiting: Mapping[str, list[int]],
    scores: Callable[[Sequence[str]], ArrayLike],
    rng: np.random.Generator,
) -> list[int]:
    """A label for each task, then a task that has it."""
    drawn = []
    while len(drawn) < pool.count:
        labels = sorted(label for label, numbers in waiting.items() if numbers)
        label = labels[rng.choice(len(labels), p=softmax(scores(labels)))]
        drawn.append(waiting[label].pop())
    return drawn
