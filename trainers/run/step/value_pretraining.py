"""Exploration before the first step: the warmed-up policy plays, and an estimator or a critic learns from it.

An estimator learns the outcomes, and is fixed then. A critic learns what was still earned from each of its tokens on,
by the targets of the run's advantage with lambda 1, and goes on to learn in every step. Those targets hold a value only
at the end of a truncated episode, where ``bootstrap`` is on.

It is a stage of its own: it begins from the checkpoint of the warm-up and ends with another one. Its episodes are kept
in journals as those of steps are, and the training depends on nothing but them and the seed. So a run that is killed
inside begins it again, plays what is missing, and comes to the same bits.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.pipeline import credit
from manyturn.trainers.learn.heads.head_config import PretrainingConfig, ProgressHeadConfig
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.rollout.branching import drawn_tokens
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.step.first_step import check_first_step
from manyturn.trainers.run.step.policy_update import policy_updates
from manyturn.trainers.run.step.rollout_collection import play_groups, starts_of
from manyturn.trainers.run.warmup.estimator_training import Outcomes, train_estimator


def is_due(run: Run, state: State) -> bool:
    """True if exploration is to come: an estimator or a critic waits for it, and no step is done."""
    waits = any(trainee.learner.estimator for trainee in run.trainees)
    return (waits or _pretraining(run) is not None) and not state.explored and state.step == 0 and run.config.steps > 0


async def explore(run: Run, state: State, folder: RunFolder, log: Log, note: Callable[[str], None]) -> None:
    """Play, and train what waits for it. If it is cancelled, nothing has changed but that, which begins again.

    Args:
        log: takes a line of metrics for each round of play and each pass of training.
        note: takes what else there is to say.

    Raises:
        LearningFailed: the outcomes have nothing to teach, or have taught too little where that is to stop the run.
    """
    tasks = _tasks(run)
    episodes = await _play(run, tasks, folder, log)
    pretraining = _pretraining(run)
    if pretraining is None:
        figures = await _train_estimators(run, tasks, episodes, log, note)
    else:
        figures = await _train_critics(run, pretraining, episodes, log)
    begun = starts_of(run, [episode.key for episode in episodes], {episode.key: episode for episode in episodes})
    turns, tokens = sum(len(episode.turns) for episode in episodes), drawn_tokens(episodes, begun)
    state.seen |= {task.content for task in tasks}
    state.count(len(episodes), turns, tokens)
    state.explored = {"episodes": len(episodes), "turns": turns, "tokens": tokens, **figures}


def _pretraining(run: Run) -> PretrainingConfig | None:
    return run.config.value.pretraining if run.config.value is not None else None


async def _train_estimators(
    run: Run, tasks: Sequence[Task], episodes: Sequence[Episode], log: Log, note: Callable[[str], None]
) -> dict[str, Any]:
    assert run.config.progress is not None, "an estimator waits"
    share, figures = run.config.progress.exploration.held_out, dict[str, Any]()
    held = {task.id for task in tasks[: max(1, round(share * len({t.id for t in tasks})))]}
    for trainee in run.trainees:
        estimate = await train_estimator(run, trainee, Outcomes.of(run, trainee, episodes, held), log)
        figures |= trainee.labelled(estimate)
        explained, least = estimate["estimate_explained"], run.config.progress.least_explained
        if explained is None or explained < least or explained <= 0:
            _refuse(run.config.progress, 0.0 if explained is None else explained, len(held), note)
    return figures


def _refuse(config: ProgressHeadConfig, share: float, held: int, note: Callable[[str], None]) -> None:
    """Say that an estimate explains too little, or stop the run, as the options have it."""
    fault = (
        f"the estimator explains {share:.0%} of the outcome's variance on the {held} held-out tasks of exploration, "
        f"less than progress.least_explained = {config.least_explained:g}"
    )
    fix = "raise progress.exploration.episodes, or take a method that needs no estimator"
    if config.exploration.unexplained == "stop":
        raise LearningFailed(f"{fault}: {fix}")
    paid = "turns are credited with what it predicts" if config.trust == "full" else "the last turn earns the outcome"
    note(f"{fault}, and {paid}: {fix}")


async def _train_critics(run: Run, config: PretrainingConfig, episodes: Sequence[Episode], log: Log) -> dict[str, Any]:
    """Passes over all that was explored; each begins with what the critic has learnt in the last one."""
    advantage, figures = run.config.credit.advantage.of_returns(), dict[str, Any]()
    returns = run.config.credit.model_copy(update={"advantage": advantage})
    for number in range(config.passes):
        for update in policy_updates(run, episodes, [True] * len(episodes), {}):
            earned = credit(update.batch, returns, update.recalled)
            targets = HeadTargets(earned.targets_T)
            key = ("critic", run.config.seed, update.trainee.name, number)
            learned = update.trainee.learner.learn_values(update.step.reading, targets, key)
            figures |= update.trainee.labelled(learned)
        if not figures:
            raise LearningFailed(
                "no episode of value.pretraining has a turn to learn from: see what they ended in, in metrics.jsonl"
            )
        log({"phase": "critic", "step": 0, "updates": number + 1, **figures})
        await asyncio.sleep(0)  # lets a signal to stop be heard
    return figures


def _tasks(run: Run) -> list[Task]:
    """The tasks that are played, drawn without repetition as long as there are others."""
    config, group = run.config, run.config.rollout.group
    if (pretraining := _pretraining(run)) is not None:
        count = pretraining.episodes // group
    else:
        assert config.progress is not None, "an estimator waits"
        count = max(2, config.progress.exploration.episodes // group)
    rng, numbers = generator("exploration", config.seed), list[int]()
    for own, share in run.shares(count, rng):
        drawn = list[int]()
        while len(drawn) < share:
            drawn += rng.choice(len(own), size=min(share - len(drawn), len(own)), replace=False).tolist()
        numbers += [own[place] for place in drawn]
    if run.config.envs:  # the first ones may be held out
        numbers = [numbers[place] for place in rng.permutation(len(numbers)).tolist()]
    return [run.train[number] for number in numbers]


async def _play(run: Run, tasks: Sequence[Task], folder: RunFolder, log: Log) -> list[Episode]:
    """The episodes of exploration, as many at a time as a step has."""
    rollout, episodes = run.config.rollout, list[Episode]()
    plan = plan_groups(tasks, rollout.group, run.config.seed, "exploration")
    size = rollout.tasks * rollout.group
    async with run.drawing():
        for round, first in enumerate(range(0, len(plan), size)):
            folder.check_room()
            played = await play_groups(run, plan[first : first + size], folder, 0, round)
            if not episodes:
                await check_first_step(run, played)
            episodes += played
            figures = run.describe(played)
            log({"phase": "exploration", "step": 0, "played_episodes": len(episodes), **figures})
    return episodes
