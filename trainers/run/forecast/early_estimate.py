"""Estimate of a run from its own first lines of metrics, while it goes on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.forecast.amounts import RunAmounts

_AFTER = (1, 3)  # steps after which the run is estimated; the first one also fills caches


class Remaining(NamedTuple):
    """An estimate after some steps.

    Attributes:
        step: the last one.
        total, left: seconds of the whole run, and from here.
        playing, learning: seconds of a step.
        measuring: seconds of the evaluations to come.
    """

    step: int
    total: float
    left: float
    playing: float
    learning: float
    measuring: float


class EarlyEstimate:
    """Takes the lines of a run as they are written.

    A step is expected to take as long as the latest one, a validation episode as long as an episode of that step, and
    the evaluation at the end as long as that before the first step.
    """

    def __init__(self, config: RunConfig):
        self._config = config
        self._before: float | None = None  # seconds at the last line before the first step
        self._evaluation = 0.0
        self._first: int | None = None

    def amounts(self, line: Mapping[str, Any]) -> RunAmounts:
        """The amounts of the run, by its line ``begin``."""
        return RunAmounts.of(self._config, line["tasks"])

    def take(self, line: Mapping[str, Any]) -> Remaining | None:
        """The estimate after this line, where there is a new one."""
        if line["phase"] in ("demonstrations", "imitation", "warmup"):
            self._before = line["seconds"]
        if line["phase"] != "train":
            return None
        step, config = line["step"], self._config
        playing, learning = line.get("rollout_seconds"), line.get("learn_seconds")
        if playing is None or learning is None:
            return None
        first = self._first
        if first is None:
            self._first = first = step
            if step == 1 and self._before is not None:  # an exploration, where there is one, counts as well
                self._evaluation = max(0.0, line["seconds"] - playing - learning - self._before)
        if step not in _AFTER or first > 1 or step >= config.steps:
            return None
        every = config.evaluation.every
        validations = config.steps // every - step // every if every else 0
        episode = playing / (config.rollout.tasks * config.rollout.group)
        measuring = self._evaluation + validations * config.evaluation.every_limit * episode
        left = (config.steps - step) * (playing + learning) + measuring
        return Remaining(step, line["seconds"] + left, left, playing, learning, measuring)
