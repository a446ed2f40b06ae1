"""Exploration before the first step: the warmed-up policy plays, and an estimator learns from the outcomes.

It is a stage of its own: it begins from the checkpoint of the warm-up and ends with another one. Its episodes are kept
in journals as those of steps are, and the training depends on nothing but them and the seed. So a run that is killed
inside begins it again, plays what is missing, and comes to the same bits.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.role_views import role_views
from manyturn.envs.contract.env.roles import own_parts
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.learn.heads.head_config import ExplorationConfig, ProgressHeadConfig
from manyturn.trainers.learn.heads.heads import explained
from manyturn.trainers.learn.heads.own_heads import FixedEstimator
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample, samples_of
from manyturn.trainers.play.rollout.branching import drawn_tokens
from manyturn.trainers.play.rollout.rollouts import describe, learnable, plan_groups, turn_batch
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run import Run
from manyturn.trainers.run.setup.trainee import Trainee
from manyturn.trainers.run.step.first_step import check_first_step
from manyturn.trainers.run.step.step_episodes import play_groups, starts_of


def is_due(run: Run, state: State) -> bool:
    """True if exploration is to come: an estimator waits for it, and no step is done."""
    waits = any(trainee.learner.estimator for trainee in run.trainees)
    return waits and not state.explored and state.step == 0 and run.config.steps > 0


async def explore(run: Run, state: State, folder: RunFolder, log: Log, note: Callable[[str], None]) -> None:
    """Play, and train the estimators. If it is cancelled, nothing has changed but the estimators, which begin again.

    Args:
        log: takes a line of metrics for each round of play and each pass of training.
        note: takes what else there is to say.

    Raises:
        LearningFailed: the outcomes have nothing to teach, or have taught too little where that is to stop the run.
    """
    assert run.config.progress is not None, "exploration is due where an estimator waits"
    config = run.config.progress.exploration
    tasks = _tasks(run, config)
    episodes = await _play(run, tasks, folder, log)
    held = {task.id for task in tasks[: max(1, round(config.held_out * len({t.id for t in tasks})))]}
    figures: dict[str, Any] = {}
    for trainee in run.trainees:
        estimate = await _train(run, trainee, _Outcomes.of(run, trainee, episodes, held), log)
        figures |= trainee.labelled(estimate)
        share, least = estimate["estimate_explained"], run.config.progress.least_explained
        if share is None or share < least or share <= 0:
            _refuse(run.config.progress, 0.0 if share is None else share, len(held), note)
    begun = starts_of(run, [episode.key for episode in episodes], {episode.key: episode for episode in episodes})
    turns, tokens = sum(len(episode.turns) for episode in episodes), drawn_tokens(episodes, begun)
    state.seen |= {task.content for task in tasks}
    state.count(len(episodes), turns, tokens)
    state.explored = {"episodes": len(episodes), "turns": turns, "tokens": tokens, **figures}


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


def _tasks(run: Run, config: ExplorationConfig) -> list[Task]:
    """The tasks that are played, drawn without repetition as long as there are others."""
    count, there = max(2, config.episodes // run.config.rollout.group), len(run.train)
    rng, numbers = generator("exploration", run.config.seed), list[int]()
    while len(numbers) < count:
        numbers += rng.choice(there, size=min(count - len(numbers), there), replace=False).tolist()
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
            figures = describe(played, run.roles, run.seats.facts.part_names)
            log({"phase": "exploration", "step": 0, "played_episodes": len(episodes), **figures})
    return episodes


@dataclass(frozen=True)
class _Outcomes:
    """The data that one policy's estimator learns from.

    Attributes:
        samples: of each of the E episodes that have an outcome, numbered among these.
        outcome_E: its outcome.
        held_E: whether its task is held out.
    """

    samples: list[list[Sample]]
    outcome_E: np.ndarray
    held_E: np.ndarray

    @classmethod
    def of(cls, run: Run, trainee: Trainee, episodes: Sequence[Episode], held: set[str]) -> "_Outcomes":
        views = [v.episode for e in learnable(episodes) for v in role_views(e, run.roles) if v.role in trainee.roles]
        outcomes = (
            outcome_E(turn_batch(views, own_parts(run.seats.facts.part_names, run.roles))) if views else np.zeros(0)
        )
        held_E = np.array([view.task.id in held for view in views], bool)
        scored = np.flatnonzero(np.isfinite(outcomes))
        samples: list[list[Sample]] = [[] for _ in scored]
        for sample in samples_of([views[number] for number in scored]):
            samples[sample.episode].append(sample)
        data = cls(samples, outcomes[scored], held_E[scored])
        data.check()
        return data

    def check(self) -> None:
        """Raise LearningFailed where there is nothing to learn from, or nothing to measure on."""
        learnt = self.outcome_E[~self.held_E]
        if len(learnt) and np.ptp(learnt) > 0 and self.held_E.any():
            return
        fault = f"all came to the outcome {learnt[0]:g}" if len(learnt) else "have no outcome that is a number"
        if not len(learnt) and len(self.outcome_E):
            fault = "are all of one task, which is held out"
        raise LearningFailed(
            f"the episodes of exploration {fault}, from which no estimator learns what a turn contributes: raise "
            "progress.exploration.episodes, or begin with a policy that succeeds now and then (warmup.until_success)"
        )


async def _train(run: Run, trainee: Trainee, data: _Outcomes, log: Log) -> dict[str, Any]:
    """Pass over what is not held out, until the held-out error falls no more; the best weights are kept."""
    estimator, norm = trainee.learner.estimator, run.config.learner.max_grad_norm
    assert estimator is not None, "exploration is due where an estimator waits"
    config, updates, best, since = estimator.config.exploration, 0, dict[str, Any](), 0
    best_tensors = estimator.fit.tensors()
    learnt = np.flatnonzero(~data.held_E)
    for number in range(config.passes):
        order = generator("estimator", run.config.seed, trainee.name, number).permutation(learnt)
        losses = list[float]()
        for first in range(0, len(order), config.batch):
            batch = [sample for episode in order[first : first + config.batch] for sample in data.samples[episode]]
            losses.append(estimator.learn(batch, data.outcome_E, norm))
            await asyncio.sleep(0)  # lets a signal to stop be heard
        updates, since = updates + len(losses), since + 1
        estimate = {"progress_loss": float(np.mean(losses)), **_measured(estimator, data)}
        log({"phase": "estimator", "step": 0, "updates": updates, **trainee.labelled(estimate)})
        if not best or estimate["estimate_error"] < best["estimate_error"]:
            best, best_tensors, since = {"updates": updates, **estimate}, estimator.fit.tensors(), 0
        if since == config.patience:
            break
    estimator.fit.load_tensors(best_tensors)
    estimator.fit.forget()
    return best


def _measured(estimator: FixedEstimator, data: _Outcomes) -> dict[str, Any]:
    """The quality of the estimate on held-out tasks."""
    held = np.flatnonzero(data.held_E)
    totals = estimator.totals([sample for episode in held for sample in data.samples[episode]], len(data.outcome_E))
    outcome, total = data.outcome_E[held], totals[held]
    return {
        "estimate_error": float(np.square(total - outcome).mean()),
        "estimate_explained": explained(total, outcome),
    }
