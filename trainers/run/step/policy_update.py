"""Update of one policy in a step: its roles' turns, the credit that they get, and the learning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.fork import Fork
from manyturn.agents.play.role_episodes import RoleView, role_views
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.env.roles import own_parts
from manyturn.envs.contract.options.registry import Memory
from manyturn.envs.hosting.local.shutdown_watchdog import watchdog
from manyturn.trainers.credit.batch.episode_sums import group_E
from manyturn.trainers.credit.batch.reward_parts import outcome_E
from manyturn.trainers.credit.batch.token_limits import longest
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK, TurnBatch
from manyturn.trainers.credit.pipeline import Credit, credit
from manyturn.trainers.learn.heads.heads import HeadTargets
from manyturn.trainers.learn.learner.column import PlayedStep, suppliers, with_columns
from manyturn.trainers.learn.learner.rate_schedule import rate_share
from manyturn.trainers.learn.passes.forward import Place
from manyturn.trainers.learn.passes.samples import samples_of
from manyturn.trainers.learn.reading.update_inputs import log_ratio
from manyturn.trainers.play.guidance.guided_play import as_learnt
from manyturn.trainers.play.rollout.branching import Starts
from manyturn.trainers.play.rollout.rollout_batch import is_learnable, turn_batch
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.setup.trainee import Trainee


@dataclass(frozen=True)
class Origins:
    """Origins of the episodes of a step that were drawn in a special way.

    Attributes:
        forks: key of each branch -> where it forks.
        temperatures: key of each episode that was drawn at another temperature than the run's -> that temperature.
    """

    forks: Mapping[EpisodeKey, Fork] = field(default_factory=dict)
    temperatures: Mapping[EpisodeKey, float] = field(default_factory=dict)

    @classmethod
    def of(cls, begun: Starts, temperatures: Mapping[EpisodeKey, float]) -> Self:
        """From where all episodes began."""
        return cls({key: fork for key, fork in begun.items() if fork is not None}, temperatures)


@dataclass(frozen=True)
class PolicyUpdate:
    """One policy's part of a step.

    Attributes:
        step: what its roles did and what it thinks of it, as it was before credit.
        places_K: the places of its turns among all turns of the step.
        batch, recalled: what credit was given to, and what its stages remembered.
        figures: what was measured on the way.
    """

    trainee: Trainee
    step: PlayedStep
    places_K: IntK
    batch: TurnBatch
    recalled: Memory
    credit: Credit
    figures: Mapping[str, float]

    @watchdog.unhurried()
    def learn(self, run: Run, number: int) -> tuple[dict[str, Any], int]:
        """Update the policy in the step of that number; returns its metrics, and how many tokens it was trained on."""
        config, earned, reading = run.config, self.credit, self.step.reading
        learned = self.trainee.learner.learn(
            reading,
            earned.advantage_T,
            rate_share(config.learner, number, config.steps),
            (config.seed, number),
            HeadTargets(earned.targets_T, outcome_E(self.step.batch), group_E(self.step.batch)),
            earned.kept_E,
        )
        figures = {
            **self.figures,
            **earned.diagnostics,
            "advantage_std": float(np.std(earned.advantage_K)),
            **learned,
            "version": self.trainee.learner.updates,
        }
        return self.trainee.labelled(figures), sum(map(len, reading.samples))

    def replay_figures(self) -> dict[str, float]:
        """Metrics of what is replayed: by how much likelier it is now than when it was drawn, where both are known."""
        samples, reading = self.step.reading.samples, self.step.reading
        rows = [row for row, sample in enumerate(samples) if self.step.episodes[sample.episode].replayed is not None]
        if not rows or not reading.is_made:
            return {}
        log_ratio_T = log_ratio([samples[row] for row in rows], [reading.logprob[row] for row in rows])
        return self.trainee.labelled({"replay_ratio": float(np.exp(log_ratio_T.clip(-20, 20)).mean())})

    def remembered(self, memory: Memory) -> dict[str, Any]:
        """The memory of the run, this update included."""
        return self.trainee.remembering(memory, self.credit.memory)


@watchdog.unhurried()
def policy_updates(
    run: Run, episodes: Sequence[Episode], kept_E: Sequence[bool], memory: Memory, origins: Origins | None = None
) -> list[PolicyUpdate]:
    """An update for each policy that had a turn, in their order.

    Args:
        episodes: all that were played in the step.
        kept_E: the episodes to learn from, unless they ended in an error.
        memory: what the run remembers from step to step.
        origins: how some episodes were drawn, where not all were drawn alike.
    """
    turns_E = [len(episode.turns) for episode in episodes]
    first_E = np.cumsum(turns_E) - turns_E
    parted = [
        (view, first + np.array(view.places))
        for episode, first, is_kept in zip(episodes, first_E.tolist(), kept_E, strict=True)
        if is_kept and is_learnable(episode)
        for view in role_views(as_learnt(episode), run.roles)
    ]
    played = {t.name: [(view, places_K) for view, places_K in parted if view.role in t.roles] for t in run.trainees}
    return [_update(run, t, played[t.name], memory, origins or Origins()) for t in run.trainees if played[t.name]]


def _update(
    run: Run,
    trainee: Trainee,
    played: Sequence[tuple[RoleView, IntK]],
    memory: Memory,
    origins: Origins,
) -> PolicyUpdate:
    episodes, columns = [view.episode for view, _ in played], suppliers(run.config, run.seats.facts)
    places: set[Place] = {supplier.hidden for supplier in columns if supplier.hidden is not None}
    reading = trainee.learner.read(samples_of(episodes), places)
    batch = turn_batch(episodes, own_parts(run.seats.facts.part_names, run.roles))
    limits = longest(run.config, run.seats.facts)
    step = PlayedStep(
        reading, batch, episodes, trainee.agent, trainee.learner, limits, origins.forks, origins.temperatures
    )
    batch, figures, recalled = with_columns(step, columns, trainee.memory(memory))
    earned = credit(batch, run.config.credit, recalled)
    places_K = np.concatenate([places_K for _, places_K in played])
    return PolicyUpdate(trainee, step, places_K, batch, recalled, earned, figures)


def credit_columns(updates: Sequence[PolicyUpdate], turns: int) -> dict[str, FloatK]:
    """The credit of all updates as columns over all turns of the step; NaN where no policy learns."""
    columns: dict[str, FloatK] = {}
    for update in updates:
        levels = {f"{name}_advantage": level_K for name, level_K in update.credit.levels.items()}
        for name, values_K in {"advantage": update.credit.advantage_K, **levels}.items():
            columns.setdefault(name, np.full(turns, np.nan))[update.places_K] = values_K
    return columns
