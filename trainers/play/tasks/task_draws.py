"""Ways to draw tasks without listing a long split."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    rng, size = pool.generator(), len(pool.tasks)
    candidates = max(pool.count, min(CANDIDATES * pool.count, size - len(pool.taken)))
    waiting = defaultdict[str, list[int]](list)
    for number in distinct(rng, size, candidates, pool.taken):
        waiting[label_of(pool.tasks[number])].append(number)
    if len(waiting) == 1 and pool.step == 1:
        raise ValueError(
            f"this curriculum chooses between kinds of tasks, but the first {candidates} are all "
            f"{next(iter(waiting))!r}: give tasks a difficulty or tags, or take the curriculum uniform"
        )
    drawn = []
    while len(drawn) < pool.count:
        labels = sorted(label for label, numbers in waiting.items() if numbers)
        label = labels[rng.choice(len(labels), p=softmax(scores(labels)))]
        drawn.append(waiting[label].pop())
    return drawn
