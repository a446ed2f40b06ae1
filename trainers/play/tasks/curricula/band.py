"""Tasks of middling success: those that nearly always or hardly ever succeed teach little.

    s_g <- s_g + rate (success - s_g)        a task is in the band if low <= s_g <= high

Source: the filter by success of Online Difficulty Filtering, arXiv 2504.03380.

Implementation:
1. Each draw explores with the probability ``explore``: it takes a task never played, or if there is none left one
   outside of the band, whose success may have changed since.
2. The others take tasks of the band while it has any, each at most once a step.
3. A task's first success is remembered as it is, later ones move it by ``rate``.
4. In a split of a million, whose tasks would hardly come twice, those of the band do: there a large ``explore`` keeps
   the agent from learning a few by heart.

Differences: the paper measures success by extra episodes of the present policy and drops what is outside; here it is
what is remembered of a task, which costs nothing and lags. Left out: a bound on how often a task of the band
comes.

Watch: ``groups_without_signal`` should be well below that of the uniform curriculum; if not, tasks change faster than
they come again. ``success`` of a step is held near the band's middle by design: held-out success shows learning.
"""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool
from manyturn.trainers.play.tasks.task_draws import distinct
from manyturn.trainers.play.tasks.task_memory import Row, recalled, remembered


class BandConfig(StageConfig):
    name: Literal["band"] = "band"
    low: float = Field(default=0.1, ge=0, le=1)
    """Least success of a task in the band."""
    high: float = Field(default=0.9, ge=0, le=1)
    """Largest success of a task in the band."""
    explore: float = Field(default=0.25, gt=0, lt=1)
    """Probability that a draw explores."""
    rate: float = Field(default=0.5, gt=0, le=1)
    """Weight of the newest success against what is remembered."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        return self


@CURRICULA.register(BandConfig, remembers=True)
def band(pool: TaskPool, config: BandConfig, memory: Sequence[Row] | None) -> tuple[Sequence[int], list[list[float]]]:
    """Numbers of the step's tasks; remembers rows of number and success.

    >>> from manyturn.envs.contract.tasks.task import Task
    >>> tasks = [Task(str(n), "train") for n in range(8)]
    >>> found = [[n, 0.5 if n < 3 else 0.0] for n in range(7)]
    >>> drawn, _ = band(TaskPool(tasks, 4, 0, 1), BandConfig(explore=0.01), found)
    >>> sorted(drawn)
    [0, 1, 2, 7]
    """
    means = recalled(memory, len(pool.tasks))
    news = {}
    for feedback in pool.feedback:
        before = means[feedback.number][0] if feedback.number in means else feedback.success
        news[feedback.number] = [before + config.rate * (feedback.success - before)]
    memory = remembered(means, news)

    played = {int(number) for number, _ in memory}
    inside = {int(number) for number, success in memory if config.low <= success <= config.high}
    rng, size = pool.generator(), len(pool.tasks)
    ready = rng.permutation(sorted(inside - pool.taken)).astype(int).tolist()
    drawn = ready[: rng.binomial(pool.count, 1 - config.explore)]
    for avoided in (played, inside, set[int]()):
        without = pool.taken.union(avoided, drawn)
        drawn += distinct(rng, size, min(pool.count - len(drawn), size - len(without)), without)
    return drawn + distinct(rng, size, pool.count - len(drawn)), memory
