"""Amounts that a configuration asks for: demonstrations, updates, episodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from manyturn.trainers.recipe.config import RunConfig


@dataclass(frozen=True)
class RunAmounts:
    """Amounts of what a run does from its first demonstration to its summary.

    Attributes:
        demonstrations: that are played before the first update; those of a stream are not among them.
        updates: of imitation, at most.
        checks: validation episodes during the warm-up, at most.
        explored: episodes that train an estimator or a critic before the first step.
        steps, step_episodes: steps, and episodes of each.
        validations: validation episodes between steps.
        evaluated: held-out episodes of the policy before the first step, and as many after the last one.
        scripted: held-out episodes of the random policy and of the expert.
    """

    demonstrations: int
    updates: int
    checks: int
    explored: int
    steps: int
    step_episodes: int
    validations: int
    evaluated: int
    scripted: int

    @classmethod
    def of(cls, config: RunConfig, tasks: Mapping[str, Any]) -> Self:
        """The amounts of a run.

        Args:
            tasks: numbers of tasks: of ``train``, of ``validation``, and of those that are ``held_out`` by environment;
                ``expert`` is true where there is one.
        """
        warmup, evaluation = config.warmup, config.evaluation
        updates = warmup.max_updates if warmup.imitates else 0
        shown = warmup.episodes if isinstance(warmup.episodes, int) and warmup.from_run is None else 0
        held_out = sum(min(evaluation.limit, count) for count in tasks["held_out"]) * evaluation.repeats
        validations = 1 + config.steps // evaluation.every if evaluation.every else 0
        return cls(
            0 if warmup.trajectories is not None else min(shown, tasks["train"]),
            updates,
            -(-updates // warmup.check_every) * min(warmup.check_episodes, tasks["validation"]),
            _explored(config),
            config.steps,
            config.rollout.tasks * config.rollout.group,
            validations * min(evaluation.every_limit, tasks["validation"]),
            held_out * (1 + evaluation.greedy),
            held_out * (1 + tasks["expert"]),
        )

    @property
    def policy_episodes(self) -> int:
        """Episodes in which the policy replies."""
        played = self.checks + self.explored + self.steps * self.step_episodes
        return played + self.validations + 2 * self.evaluated

    @property
    def words(self) -> str:
        """The amounts in a sentence."""
        parts = [
            (self.demonstrations, f"{self.demonstrations:,} demonstrations"),
            (self.updates, f"at most {self.updates:,} updates of imitation"),
            (self.explored, f"{self.explored:,} episodes of exploration"),
            (self.steps, f"{self.steps:,} steps of {self.step_episodes:,} episodes"),
            (1, f"{self.checks + self.validations + 2 * self.evaluated:,} episodes to measure success"),
        ]
        return ", ".join(text for count, text in parts if count)


def _explored(config: RunConfig) -> int:
    if not config.steps:
        return 0
    if config.value is not None and config.value.pretraining is not None:
        return config.value.pretraining.episodes
    if config.progress is not None and config.progress.is_fixed:
        return config.progress.exploration.episodes
    return 0
