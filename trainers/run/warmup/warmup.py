"""Supervised warm-up: imitate successful demonstrations until the policy reaches a success worth improving on.

The end is set by success, not by seconds or steps: one and the same number of updates leaves some seeds at a success
from which reinforcement learning never starts. A warm-up without any success stops the run, unless none was asked for.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Episode
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.resource_use import Stopwatch
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.warmup.demonstrations import Demonstrations, demonstrations
from manyturn.trainers.run.warmup.imitation_batches import Batch, DemonstrationStream, FixedSet, ImitationBatches
from manyturn.trainers.run.warmup.shared_warmup import take_warmup
from manyturn.trainers.run.warmup.warmup_failure import Measurement, plateau, without_success


@dataclass
class WarmupProgress:
    """The progress of a warm-up.

    Attributes:
        updates: that were made, up to a measurement.
        history: the loss of the first update, and the measurements.
        stood: whether a plateau was named already.
        streamed: demonstrations that were played for updates.
        contents: of the tasks of these.
        cpu_seconds: of demonstrations, updates and measurements.
    """

    updates: int = 0
    history: list[Measurement] = field(default_factory=list)
    stood: bool = False
    streamed: int = 0
    contents: set[str] = field(default_factory=set)
    cpu_seconds: float = 0.0

    def plain(self) -> dict[str, Any]:
        """JSON values for a checkpoint."""
        history = [vars(measurement) for measurement in self.history]
        return {**vars(self), "history": history, "contents": sorted(self.contents)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of ``plain``; nothing is the start."""
        history = [Measurement(**row) for row in plain.get("history", ())]
        return cls(**{**plain, "history": history, "contents": set(plain.get("contents", ()))})

    def take(self, episodes: Sequence[Episode]) -> None:
        """Count demonstrations that were played for updates."""
        self.streamed += len(episodes)
        self.contents |= {episode.task.content for episode in episodes}


class WarmupOutput(NamedTuple):
    """The listeners of a warm-up.

    Attributes:
        log: takes a line of metrics when demonstrations are there, after the first update, and at each measurement.
        note: takes what else there is to say.
        heed: raises where the run was asked to stop; what was done since the last measurement is lost then.
        measured: takes the progress at each measurement but the last, to save it.
    """

    log: Log
    note: Callable[[str], None]
    heed: Callable[[], None]
    measured: Callable[[WarmupProgress], None]


async def warm_up(run: Run, output: WarmupOutput, progress: WarmupProgress) -> tuple[dict[str, Any], set[str]]:
    """Imitate, or take over what another run has learnt by it.

    Args:
        progress: where to go on; the policies have the weights of then.

    Returns:
        What happened, and the contents of the tasks that were shown.

    Raises:
        ConfigError: there is nothing to imitate or take over, or the policy could not say or read what was shown.
        LearningFailed: it ended without a success.
    """
    config = run.config.warmup
    if config.from_run is not None:
        taken, seen = take_warmup(run)
        output.note(f"the warm-up is that of {config.from_run}, with {taken['updates']} updates")
        return taken, seen
    if not config.episodes:
        return {"updates": 0, "demonstrations": 0}, set()
    clock = Stopwatch()
    shown = await demonstrations(run, output.note)
    warming = _Warming(run, output, progress, shown, clock)
    cost = warming.lap("rollout")
    if not progress.updates:
        output.log({"phase": "demonstrations", "step": 0, **warming.facts, **cost})
    while progress.updates < config.max_updates:
        await warming.update()
        if progress.updates % config.check_every == 0 or progress.updates == config.max_updates:
            success = await warming.measure()
            if success is not None and success >= config.until_success:
                return warming.facts, warming.contents
            if _at_plateau(progress.history, config.plateau):
                break
    _judge(run, progress.history, warming.played, shown, output.note)
    return warming.facts, warming.contents


def _at_plateau(history: Sequence[Measurement], measurements: int | None) -> bool:
    """True if there was a success, which was highest at least so many measurements ago."""
    successes = [measurement.metrics.get("success") or 0.0 for measurement in history[1:]]  # after the first update's
    if measurements is None or not any(successes):
        return False
    return len(successes) - 1 - successes.index(max(successes)) >= measurements


class _Warming:
    """A warm-up in progress.

    Attributes:
        played: the episodes of the last measurement.
    """

    def __init__(
        self, run: Run, output: WarmupOutput, progress: WarmupProgress, shown: Demonstrations, clock: Stopwatch
    ):
        self._run, self._output, self._progress, self._shown, self._clock = run, output, progress, shown, clock
        config = run.config.warmup
        self._batches: ImitationBatches = (
            DemonstrationStream(run, progress.take)
            if config.streams
            else FixedSet(shown.samples, config.batch, run.config.seed, progress.updates)
        )
        self.played: list[Episode] = []
        self._losses, self._since = dict[str, Any](), list[float]()
        self._spent, self._trained = defaultdict[str, float](float), 0  # since the last line

    @property
    def facts(self) -> dict[str, Any]:
        """The warm-up so far, for the summary."""
        config, progress, shown = self._run.config.warmup, self._progress, self._shown
        count = progress.streamed if config.streams else sum(map(len, shown.samples))
        facts: dict[str, Any] = {"demonstrations": count, "updates": progress.updates}
        if config.invalid:
            facts["invalid"] = shown.invalid
        if len(progress.history) > 1:
            facts["success"] = progress.history[-1].metrics["success"]
        return {**facts, "cpu_seconds": round(progress.cpu_seconds, 1)}

    @property
    def contents(self) -> set[str]:
        """Contents of the tasks that were shown."""
        return self._progress.contents | self._shown.shown

    def lap(self, name: str) -> dict[str, float]:
        """The cost since the last lap, which counts."""
        cost = self._clock.lap(name)
        self._progress.cpu_seconds += cost[f"{name}_cpu_seconds"]
        return cost

    @property
    def _rate(self) -> float:
        """The learning rate of the last update."""
        config = self._run.config.warmup
        return config.lr * (1 - 0.9 * (self._progress.updates - 1) / config.max_updates)

    async def update(self) -> None:
        """The next update, with a line after the first."""
        run, progress = self._run, self._progress
        self._spend("learn")
        batch = await self._batches.batch(progress.updates + 1)
        self._spend("demonstration" if run.config.warmup.streams else "learn")
        progress.updates += 1
        self._losses, tokens = await _update(run, batch, self._rate, self._output.heed)
        self._since += self._losses.values()
        self._trained += tokens
        if progress.updates == 1:
            progress.history.append(Measurement(1, float(np.mean(self._since)), {}))
            line = {"phase": "imitation", "step": 0, "updates": 1, **self._losses}
            self._output.log({**line, **self._cost(), "lr": self._rate})

    def _cost(self) -> dict[str, float]:
        """The cost of updates, and of demonstrations for them, since the line before, over so many tokens."""
        self._spend("learn")
        spent, tokens, self._spent, self._trained = self._spent, self._trained, defaultdict(float), 0
        return {**{name: round(seconds, 3) for name, seconds in spent.items()}, "trained_tokens": tokens}

    def _spend(self, name: str) -> None:
        """Count the time since the last lap as this part's."""
        for key, seconds in self.lap(name).items():
            self._spent[key] += seconds

    async def measure(self) -> float | None:
        """Play validation tasks and write a line; returns the success."""
        run, config, progress = self._run, self._run.config.warmup, self._progress
        updates, before = progress.updates, progress.history[-1].update if progress.history else 0
        cost = self._cost()
        self.played = await _validation(run, f"warmup/{updates}", config.check_episodes)
        cost |= self.lap("rollout")
        self._batches.measured()
        metrics = run.describe(self.played)
        remaining = config.max_updates - updates
        pace = (cost["learn_seconds"] + cost.get("demonstration_seconds", 0.0)) / max(updates - before, 1)
        cost["warmup_left_seconds"] = remaining * pace + -(-remaining // config.check_every) * cost["rollout_seconds"]
        line = {"phase": "warmup", "step": 0, **metrics, **self._losses, **cost, "lr": self._rate}
        progress.history.append(Measurement(updates, float(np.mean(self._since)), metrics))
        self._output.log({**line, **{name: self.facts[name] for name in ("updates", "demonstrations", "cpu_seconds")}})
        self._since.clear()
        success = metrics["success"]
        ends = _at_plateau(progress.history, config.plateau)
        if remaining and not ends and (success is None or success < config.until_success):
            if not progress.stood and (reason := plateau(run, progress.history, self.played, self._shown)):
                progress.stood = True
                self._output.note(reason)
            self._output.measured(progress)
        return success


async def _update(run: Run, batch: Batch, rate: float, heed: Callable[[], None]) -> tuple[dict[str, Any], int]:
    """One update of each policy; returns the losses, and how many tokens they were over."""
    losses, tokens = dict[str, Any](), 0
    for trainee, samples in zip(run.trainees, batch, strict=True):
        measured = trainee.learner.imitate(samples, rate, run.config.warmup.observed, heed)
        tokens += sum(map(len, samples))
        losses |= trainee.labelled({"loss": measured["loss"]})
        await asyncio.sleep(0)  # lets a signal to stop be heard
    return losses, tokens


def _judge(
    run: Run, history: list[Measurement], played: list[Episode], shown: Demonstrations, note: Callable[[str], None]
) -> None:
    """A warm-up that did not reach its success: without any it stops, with some it says so."""
    config, success = run.config.warmup, history[-1].metrics["success"]
    if not success and config.must_succeed:
        raise LearningFailed(without_success(run, history, played, shown))
    reached = "no success that is known" if success is None else f"success {success:.2f}"
    note(
        f"the warm-up ended after {history[-1].update} updates with {reached}, below warmup.until_success = "
        f"{config.until_success:g}: the run goes on from there"
    )


async def validate(run: Run, stage: str, tasks: int) -> dict[str, Any]:
    """The metrics of the first validation tasks, played once each with the present policy."""
    return run.describe(await _validation(run, stage, tasks))


async def _validation(run: Run, stage: str, tasks: int) -> list[Episode]:
    plan = plan_groups(run.validation_tasks(tasks), 1, run.config.seed, stage)
    async with run.drawing():
        return await gather(
            run.seats,
            run.policy(),
            plan,
            max_turns=run.config.rollout.max_turns,
            patience=run.patience,
            breaker=run.breaker,
        )
