"""One step of reinforcement learning: draw tasks, play groups of episodes, give credit to their turns, update."""

from typing import Any

from manyturn.envs.contract.options.registry import Memory
from manyturn.trainers.play.rollout.dynamic_sampling import Refill
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.play.rollout.spread_filter import filtered
from manyturn.trainers.record.resource_use import Stopwatch
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.step.first_step import check_first_step
from manyturn.trainers.run.step.learning import Lesson, replays_of
from manyturn.trainers.run.step.logprob_mismatch import check_engines
from manyturn.trainers.run.step.rollout_collection import play_groups, starts_of, temperatures_of
from manyturn.trainers.run.step.task_draw import draw_tasks, forget_grown, task_of


async def train_step(run: Run, state: State, folder: RunFolder) -> dict[str, Any]:
    """The next step; returns its metrics. Until the update nothing of the run changes, and after it nothing waits."""
    clock, step = Stopwatch(), state.step + 1
    earlier = run.engine_figures()
    async with run.drawing():
        refill, numbers, memory = await _play_rounds(run, state, folder)
    rollout, episodes = {**clock.lap("rollout"), **run.engine_figures()}, refill.played
    for name in earlier:
        if name.endswith("out_of_memory"):  # while held-out tasks were played, which have no line of their own
            rollout[name] = rollout.get(name, 0) + earlier[name]
    if step == 1:
        await check_first_step(run, episodes)
    begun = starts_of(run, [episode.key for episode in episodes], {episode.key: episode for episode in episodes})
    temperatures = temperatures_of(run, [episode.key for episode in episodes], state.memory)
    replays = replays_of(run, folder, state, episodes, refill.is_kept)
    is_kept, spread = filtered(replays.episodes, replays.is_kept, run.learning_roles, run.config.rollout.spread_share)
    lesson = Lesson(
        step,
        replays.episodes,
        is_kept,
        numbers,
        begun,
        temperatures,
        replays.figures | spread,
        replays.stored,
        replays.imitated,
    )
    updates = lesson.updates(run, memory)
    alarms = await check_engines(run, updates)
    learned, memory = lesson.learn(run, folder, updates, memory)
    counted = lesson.settle(run, state, updates, memory)
    forget_grown(state)
    return {
        **run.describe(episodes),
        **alarms,
        **learned,
        **rollout,
        **run.seats.figures(),
        "rounds": refill.round,
        **clock.lap("learn"),
        **counted,
    }


async def _play_rounds(run: Run, state: State, folder: RunFolder) -> tuple[Refill, dict[str, int], Memory]:
    """Play groups until the step is complete.

    Returns:
        The episodes, task id -> number of each task that was drawn, and what the curriculum remembers.
    """
    config, rollout, step = run.config, run.config.rollout, state.step + 1
    refill = Refill(rollout.tasks, rollout.group, rollout.rounds, run.learning_roles)
    numbers, memory, feedback = dict[str, int](), state.memory, state.feedback
    while refill.missing:
        drawn, memory = draw_tasks(run, state, step, refill.missing, feedback, memory, numbers.values())
        tasks = [task_of(run, state, number) for number in drawn]
        numbers |= {task.id: number for task, number in zip(tasks, drawn, strict=True)}
        stage = f"train/{step}/{refill.round}" if refill.round else f"train/{step}"
        plan = plan_groups(tasks, rollout.group, config.seed, stage)
        temperatures = temperatures_of(run, [key for _, key in plan], state.memory)
        refill = refill.after(await play_groups(run, plan, folder, step, refill.round, temperatures))
        feedback = []  # it is given once
    return refill, numbers, memory
