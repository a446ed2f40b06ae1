"""Tasks that grow: those of middling success come back harder, failed ones easier, in place of tasks of the split.

    s_g <= low:  an easier variant of g        low < s_g <= high:  a harder one        s_g > high:  none
    a step draws its tasks from the waiting variants with the probability ``share``, and from the split otherwise

Source: the loop of CLPO, arXiv 2509.25004, and of eva, arXiv 2411.00062, in the form that needs no strong model: there
a language model writes the new task, here the environment changes its own (``TextEnv.vary``).

Implementation:
1. Only tasks whose episodes could be scored are varied, by the success of the step that played them. A variant that is
   played is varied in its turn, so that tasks grow step by step as far as the policy follows.
2. A variant waits until it is drawn, the newest first; the oldest of more than ``waiting`` are forgotten.
3. A variant belongs to the training split by its content, or the run stops (see ``split_rule``): what the policy is
   tested on is never trained on.
4. Where the environment has no harder or easier task to give, nothing takes the place.

Differences: CLPO, whose bounds these are, rewrites what is of medium difficulty to be more diverse, and learns to
rewrite; eva weighs tasks by how much their rewards differ. Both play new tasks beside the old ones, as here.

Watch: ``success`` of a step is held between ``low`` and ``high`` by design: held-out success on harder levels shows
what growth has brought. ``groups_without_signal`` should be below that of the uniform curriculum.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.task import Direction, Task
from manyturn.trainers.credit.stages import StageConfig
from manyturn.trainers.play.tasks.curriculum_input import CURRICULA, TaskPool, plain_task, task_of_plain
from manyturn.trainers.play.tasks.task_draws import distinct

Waiting = Mapping[str, Sequence[Mapping[str, Any]]]


class GrowConfig(StageConfig):
    chooses: ClassVar[bool] = False
    name: Literal["grow"] = "grow"
    low: float = Field(default=0.25, ge=0, le=1)
    """Success up to which a task comes back easier."""
    high: float = Field(default=0.75, ge=0, le=1)
    """Success above which a task does not come back."""
    share: float = Field(default=0.5, gt=0, le=1)
    """Probability that a draw takes a variant, where one waits."""
    waiting: int = Field(default=200, ge=1, le=10_000)
    """Variants that wait at most."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if env is None or env.vary is not None:
            return None
        return (
            f"curriculum grow varies tasks, and {env.name} does not: override vary() in the environment, or take "
            "another curriculum"
        )


@CURRICULA.register(GrowConfig, remembers=True)
def grow(pool: TaskPool, config: GrowConfig, memory: Waiting | None) -> tuple[list[int | Task], Waiting]:
    """Numbers of the step's tasks, and the new tasks among them; remembers the variants that wait.

    >>> from manyturn.trainers.play.tasks.curriculum_input import TaskFeedback
    >>> tasks = [Task(str(n), "train", {"size": n}) for n in range(8)]
    >>> def vary(task, direction, rng):
    ...     size = task.params["size"] + (10 if direction == "harder" else -10)
    ...     return Task(f"size {size}", "train", {"size": size})
    >>> found = [TaskFeedback(n, "", s, s, 0.0, True, 4) for n, s in ((1, 0.0), (2, 0.5), (3, 1.0))]
    >>> drawn, _ = grow(TaskPool(tasks, 4, 0, 1, found, vary=vary), GrowConfig(share=1.0), None)
    >>> [task.id for task in drawn if isinstance(task, Task)]
    ['size 12', 'size -9']
    """
    waiting, rng = list((memory or {}).get("waiting", ())), pool.generator()
    for task, success, number in ((pool.task(one.number), one.success, one.number) for one in pool.feedback):
        direction: Direction = "easier" if success <= config.low else "harder"
        if success > config.high or pool.vary is None:
            continue
        varied = pool.vary(task, direction, pool.generator_of("vary", pool.step, number))
        if varied is not None:
            waiting.append(plain_task(varied))
    waiting = waiting[-config.waiting :]
    drawn: list[int | Task] = []
    for _ in range(rng.binomial(pool.count, config.share)):
        if waiting:
            drawn.append(task_of_plain(waiting.pop()))
    rest = distinct(rng, len(pool.tasks), pool.count - len(drawn), {n for n in pool.taken if n < len(pool.tasks)})
    return [*drawn, *rest], {"waiting": waiting}
