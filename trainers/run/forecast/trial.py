"""Trial of a configuration: a few demonstrations, updates and steps of it, in a folder that is deleted afterwards."""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.ranks.process_group import started_ranks
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.warmup_config import WarmupConfig
from manyturn.trainers.run.loop.loop import train

_STEPS = 2  # the first one also fills caches
_UPDATES = 60  # after which a tiny model writes replies of the right form, as long as they will be
_LEAST, _SHARE = 32, 0.1  # demonstrations: at least so many, and this share of the run's
_PANEL = 16  # held-out tasks
_PASSES = 2  # of an estimator or a critic over what was explored
_NEVER = 10**9  # steps


class Cost(NamedTuple):
    """Seconds of the clock, and of this process's CPU."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        """The sum with so many times another cost."""
        return Cost(self.seconds + times * other.seconds, self.cpu_seconds + times * other.cpu_seconds)

    def times(self, factor: float) -> "Cost":
        """So many times this cost."""
        return Cost().plus(self, factor)


class Stamped(NamedTuple):
    """A line of metrics, and what the run had cost when it was written."""

    line: dict[str, Any]
    at: Cost


class StampedLines:
    """Collects the lines of a run, each with the cost since this was made."""

    def __init__(self) -> None:
        self._began = self._now()
        self.lines: list[Stamped] = []

    def __call__(self, line: dict[str, Any]) -> None:
        self.lines.append(Stamped(line, self.cost))

    @property
    def cost(self) -> Cost:
        """The cost since this was made."""
        return self._now().plus(self._began, -1.0)

    @staticmethod
    def _now() -> Cost:
        return Cost(time.monotonic(), time.process_time())


@dataclass(frozen=True)
class Trial:
    """A trial that has ended.

    Attributes:
        config: of the trial.
        lines: of its metrics and notices.
        summary: as a run's ``summary.json``.
        cost: of all of it.
    """

    config: RunConfig
    lines: list[Stamped]
    summary: dict[str, Any]
    cost: Cost

    def phase(self, name: str) -> list[Stamped]:
        """The lines of a phase."""
        return [stamped for stamped in self.lines if stamped.line["phase"] == name]

    @classmethod
    async def of(cls, config: RunConfig) -> Self:
        """Train with the options of a run, shortened. No folder but a temporary one is written.

        Raises:
            ConfigError, LearningFailed: as the run itself would.
        """
        if started_ranks() > 1:
            raise ConfigError("a trial is of one process: leave torchrun out, or leave --dry out")
        short, lines = trial_config(config), StampedLines()
        with TemporaryDirectory(prefix="manyturn-trial-") as passing:
            summary = await train(short, Path(passing) / "run", report=lines)
        return cls(short, lines.lines, summary, lines.cost)


def trial_config(config: RunConfig) -> RunConfig:
    """The configuration of a trial: same environment, model, options of play and of learning; less of everything."""
    changes: dict[str, Any] = {
        "steps": min(config.steps, _STEPS),
        "warmup": _short_warmup(config.warmup),
        "evaluation": config.evaluation.model_copy(
            update={"limit": min(config.evaluation.limit, _PANEL), "repeats": 1, "greedy": False, "every": 0}
        ),
        "stopping": config.stopping.model_copy(update={"no_signal": None}),
        "loggers": (),
        "checkpoint_every": _NEVER,
    }
    group = config.rollout.group
    if config.progress is not None and config.progress.is_fixed:
        exploration = config.progress.exploration
        few = {"episodes": min(exploration.episodes, 4 * group), "passes": min(exploration.passes, _PASSES)}
        short = exploration.model_copy(update={**few, "unexplained": "go_on"})
        changes["progress"] = config.progress.model_copy(update={"exploration": short})
    if config.value is not None and (critic := config.value.pretraining) is not None:
        few = {"episodes": min(critic.episodes, 4 * group), "passes": min(critic.passes, _PASSES)}
        changes["value"] = config.value.model_copy(update={"pretraining": critic.model_copy(update=few)})
    if config.judge is not None and config.warmup.imitates:  # after a short warm-up there is little to agree on
        changes["judge"] = config.judge.model_copy(update={"min_agreement": 0.0})
    return config.model_copy(update=changes)


def _short_warmup(warmup: WarmupConfig) -> WarmupConfig:
    if not warmup.imitates:
        return warmup
    updates = min(warmup.max_updates, _UPDATES)
    changes: dict[str, Any] = {
        "max_updates": updates,
        "check_every": updates,
        "check_episodes": 1,
        "until_success": 0.0,
        "must_succeed": False,
        "plateau": None,
    }
    if isinstance(warmup.episodes, int) and warmup.trajectories is None:
        changes["episodes"] = min(warmup.episodes, max(_LEAST, round(_SHARE * warmup.episodes)))
    return warmup.model_copy(update=changes)
