"""Draw of the tasks of a step by the run's curriculum, and the admission of tasks that it has made.

A task that a curriculum makes is trained on only if it belongs to the training split by its environment's own rule, and
is none of those that the run is measured on. It gets a number after those of the split, under which feedback, plans of
later steps and checkpoints speak of it. Numbers are given in the order of drawing, and the same task keeps its number,
so that a step that was interrupted draws the same again.
"""

from collections.abc import Collection, Sequence
from typing import Any

from manyturn.agents.evaluation.evaluate import NotHeldOut
from manyturn.envs.contract.options.registry import Memory
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.tasks.curriculum_input import TaskFeedback, TaskPool, plain_task, task_of_plain
from manyturn.trainers.play.tasks.env_shares import drawn_tasks
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import Run


def draw_tasks(
    run: Run,
    state: State,
    step: int,
    count: int,
    feedback: Sequence[Sequence[Any]],
    memory: Memory,
    taken: Collection[int] = (),
) -> tuple[list[int], Memory]:
    """Numbers of the tasks that a step plays, and what the curriculum remembers.

    Args:
        state: takes the tasks that the curriculum has made.
        feedback: of the steps since the last draw, rows of ``TaskFeedback``.
        taken: numbers that the step has drawn already.

    Raises:
        NotHeldOut: the curriculum has made a task that may not be trained on.
    """
    pool = TaskPool(
        run.train,
        count,
        run.config.seed,
        step,
        [TaskFeedback(*row) for row in feedback],
        frozenset(taken),
        grown={int(number): task_of_plain(plain) for number, plain in state.grown.items()},
        vary=run.seats.facts.vary,
    )
    drawn, memory = drawn_tasks(run.config.curriculum, memory, pool, run.config.weights)
    return [_admitted(run, state, one) if isinstance(one, Task) else one for one in drawn], memory


def task_of(run: Run, state: State, number: int) -> Task:
    """The task of a number."""
    plain = state.grown.get(str(number))
    return run.train[number] if plain is None else task_of_plain(plain)


def forget_grown(state: State) -> None:
    """Forget the grown tasks that neither feedback nor a step to come speaks of."""
    needed = {row[0] for row in state.feedback} | {number for numbers in state.drawn for number in numbers}
    state.grown = {number: plain for number, plain in state.grown.items() if int(number) in needed}


def _admitted(run: Run, state: State, task: Task) -> int:
    """The number of a task that a curriculum has made. Raises NotHeldOut where it may not be trained on."""
    own = run.seats.of(task).facts
    rule = run.seats.facts.split_rule
    split = None if rule is None else rule(task)
    if split != "train" or task.split != "train":
        raise NotHeldOut(
            f"{own.name} made a task for training, {task.id!r}, that belongs to the split {split or 'unknown'} by its "
            "content: let vary() give tasks of the split train, or override split_rule() if splits follow another rule"
        )
    if task.content in run.measured_contents:
        raise NotHeldOut(
            f"{own.name} made a task for training, {task.id!r}, that this run is measured on: let vary() give tasks "
            "that no other split has"
        )
    for number, plain in state.grown.items():
        if plain["id"] == task.id:
            return int(number)
    number = len(run.train) + state.made
    state.made += 1
    state.grown[str(number)] = plain_task(task)
    return number
