"""Training of an estimator on what was explored before the first step: the outcomes of episodes, task by task."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.role_episodes import role_views
from manyturn.envs.contract.env.roles import own_parts
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.learn.heads.heads import explained
from manyturn.trainers.learn.heads.separate_critic import FixedEstimator
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample, samples_of
from manyturn.trainers.play.rollout.rollout_batch import learnable, turn_batch
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.trainee import Trainee


@dataclass(frozen=True)
class Outcomes:
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
    def of(cls, run: Run, trainee: Trainee, episodes: Sequence[Episode], held: set[str]) -> "Outcomes":
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


async def train_estimator(run: Run, trainee: Trainee, data: Outcomes, log: Log) -> dict[str, Any]:
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


def _measured(estimator: FixedEstimator, data: Outcomes) -> dict[str, Any]:
    """The quality of the estimate on held-out tasks."""
    held = np.flatnonzero(data.held_E)
    totals = estimator.totals([sample for episode in held for sample in data.samples[episode]], len(data.outcome_E))
    outcome, total = data.outcome_E[held], totals[held]
    return {
        "estimate_error": float(np.square(total - outcome).mean()),
        "estimate_explained": explained(total, outcome),
    }
