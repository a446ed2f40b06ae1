"""What one policy learns from a step: its roles' turns, the credit that they get, and the update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.agents.episode import Episode
from manyturn.agents.role_views import RoleView, role_views
from manyturn.envs.contract.registry import Memory
from manyturn.trainers.credit.pipeline import Credit, credit
from manyturn.trainers.credit.reward_parts import outcome_E
from manyturn.trainers.credit.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.learn.drift import visited
from manyturn.trainers.learn.samples import samples_of
from manyturn.trainers.play.rollouts import is_learnable
from manyturn.trainers.run.columns import DRIFT, batch_of
from manyturn.trainers.run.run import Run
from manyturn.trainers.run.trainee import Trainee


@dataclass(frozen=True)
class PolicyUpdate:
    """The credit of one policy in a step.

    Attributes:
        episodes: what its roles did, E episodes with K turns; of several roles in one episode each has its own.
        places_K: where these turns stand among all turns of the step.
        batch: the turns as they were played, before the rewards stage.
        figures: what was measured on the way.
    """

    trainee: Trainee
    episodes: list[Episode]
    places_K: IntK
    batch: TurnBatch
    credit: Credit
    figures: dict[str, Any]

    def learn(self, run: Run, step: int) -> tuple[dict[str, Any], int]:
        """Update the policy; returns its metrics, and how many tokens it was trained on."""
        config, earned = run.config, self.credit
        samples = samples_of(self.episodes, earned.advantage_K, earned.token_T)
        learned = self.trainee.learner.learn(
            samples,
            (step - 1) / config.steps,
            (config.seed, step),
            earned.targets_T,
            None if config.progress is None else outcome_E(self.batch),
        )
        told = {
            **self.figures,
            **earned.diagnostics,
            "advantage_std": float(np.std(earned.advantage_K)),
            **learned,
            "version": self.trainee.learner.updates,
        }
        return self.trainee.labelled(told), sum(map(len, samples))

    def remembered(self, run: Run, memory: Memory) -> dict[str, Any]:
        """What the run remembers, this lesson included."""
        own = dict(self.credit.memory)
        if DRIFT in run.config.credit.needs:
            own[DRIFT] = visited(self.trainee.memory(memory).get(DRIFT, {}), self.episodes)
        return self.trainee.remembering(memory, own)


def policy_updates(run: Run, episodes: Sequence[Episode], kept: Sequence[bool], memory: Memory) -> list[PolicyUpdate]:
    """A lesson for each policy that had a turn, in their order.

    Args:
        episodes: all that were played in the step.
        kept: which of them are learnt from, unless they ended in an error.
        memory: what the run remembers from step to step.
    """
    turns_E = [len(episode.turns) for episode in episodes]
    first_E = np.cumsum(turns_E) - turns_E
    parted = [
        (view, first + np.array(view.places))
        for episode, first, is_kept in zip(episodes, first_E.tolist(), kept, strict=True)
        if is_kept and is_learnable(episode)
        for view in role_views(episode, run.roles)
    ]
    played = {t.name: [(view, places_K) for view, places_K in parted if view.role in t.roles] for t in run.trainees}
    return [_lesson(run, t, played[t.name], memory) for t in run.trainees if played[t.name]]


def _lesson(run: Run, trainee: Trainee, played: Sequence[tuple[RoleView, IntK]], memory: Memory) -> PolicyUpdate:
    episodes, recalled = [view.episode for view, _ in played], trainee.memory(memory)
    batch, figures = batch_of(run, trainee, episodes, recalled)
    earned = credit(batch, run.config.credit, recalled)
    return PolicyUpdate(trainee, episodes, np.concatenate([places_K for _, places_K in played]), batch, earned, figures)


def credit_columns(lessons: Sequence[PolicyUpdate], turns: int) -> dict[str, FloatK]:
    """The credit of all lessons as columns over all turns of the step; NaN where nobody learns."""
    columns: dict[str, FloatK] = {}
    for lesson in lessons:
        levels = {f"{name}_advantage": level_K for name, level_K in lesson.credit.levels.items()}
        for name, values_K in {"advantage": lesson.credit.advantage_K, **levels}.items():
            columns.setdefault(name, np.full(turns, np.nan))[lesson.places_K] = values_K
    return columns
