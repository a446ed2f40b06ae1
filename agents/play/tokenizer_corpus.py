"""The texts that a tiny model's vocabulary is made from: what an environment says and what can be said to it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience
from manyturn.agents.play.demonstrations.inner_texts import phrases
from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.text.chat_template import well_formed
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError
from manyturn.envs.hosting.local.seats import Seat, Seats
from manyturn.envs.hosting.local.worker import WorkerError

_PATIENCE = Patience()


async def texts_of(
    seats: Seats,
    config: AgentConfig,
    tasks: int,
    seed: int,
    *,
    turns: int = 30,
    patience: Patience = _PATIENCE,
    on_task: Callable[[int, int], None] = lambda done, planned: None,
) -> list[str]:
    """Pieces of text from training tasks, each as it appears at the beginning of a message.

    Walks through training tasks by expert moves and random admissible commands in turn; held-out tasks are not
    touched. A walk that ended in an error is tried again, and left out after the last attempt.

    Args:
        seats: where the tasks are played; as many together as there are processes.
        tasks: how many training tasks are visited.
        turns: longest walk.
        on_task: called after each task with how many are done, and how many are planned.

    Returns:
        The texts in the order of the tasks, whichever was played first.

    Raises:
        TooManyErrors: more than ``patience.error_share`` of the tasks, and at least two, ended in an error.
    """
    train = seats.tasks("train")
    numbers = generator("vocabulary", seed).choice(len(train), size=min(tasks, len(train)), replace=False)
    chosen = [train[int(number)] for number in numbers]
    walks: list[list[str]] = [[] for _ in chosen]
    walk = _Walk(config, seed, turns, seats.facts.has_expert)
    waiting, allowed, errors, done = iter(enumerate(chosen)), max(1, int(patience.error_share * len(chosen))), 0, 0

    async def lane() -> None:
        nonlocal errors, done
        async with seats.take() as seat:
            for number, task in waiting:
                try:
                    walks[number] = await _patient_walk(seat, walk, task, patience.attempts)
                except (EnvError, WorkerError) as error:
                    errors += 1
                    if errors > allowed:
                        raise TooManyErrors(_complaint(errors, len(chosen), task, error)) from error
                done += 1
                on_task(done, len(chosen))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(seats.processes, seats.limit, len(chosen))):
                group.create_task(lane())
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    rules = config.system_text(well_formed(seats.facts.instructions))
    return [rules, *map(well_formed, config.inner_texts), *(text for walk in walks for text in walk)]


@dataclass(frozen=True)
class _Walk:
    """Settings of all walks through training tasks."""

    config: AgentConfig
    seed: int
    turns: int
    has_expert: bool


async def _patient_walk(seat: Seat, walk: _Walk, task: Task, attempts: int) -> list[str]:
    while True:
        try:
            return await _texts(seat, walk, task)
        except (EnvError, WorkerError) as error:
            attempts -= isinstance(error, EnvError) or not error.bystander
            if not attempts:
                raise


async def _texts(seat: Seat, walk: _Walk, task: Task) -> list[str]:
    """The texts of one task."""
    config = walk.config
    rng, texts, form = generator("vocabulary", walk.seed, task.id), list[str](), config.reply_format
    step = await seat.reset(task, walk.seed)
    for _ in range(walk.turns):
        texts.append(config.view(step))
        texts += map(form.render, step.admissible or ())
        action = await _action(seat, walk, step, rng)
        if action is None:
            break
        texts += [form.render(action), *phrases(() if config.inner is None else config.inner.kinds, action)]
        step = await seat.step(action)
        if step.ended:
            texts.append(config.view(step))
            break
    return [well_formed(text) for text in texts]


async def _action(seat: Seat, walk: _Walk, step: Answer, rng: np.random.Generator) -> str | None:
    """An expert's move or an admissible command; None where neither is known."""
    if walk.has_expert and rng.random() < 0.7:
        return await seat.expert()
    if step.admissible:
        return step.admissible[int(rng.integers(len(step.admissible)))]
    return await seat.expert() if walk.has_expert else None


def _complaint(errors: int, planned: int, last: Task, error: Exception) -> str:
    return (
        f"{errors} of {planned} training tasks that were played for the model's vocabulary ended in an error, the "
        f"last, {last.id}: {error}. Run manyturn check on the environment; rollout.error_share allows more"
    )
