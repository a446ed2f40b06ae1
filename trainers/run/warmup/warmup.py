"""Supervised warm-up: imitate successful demonstrations until the policy reaches a success worth improving on.

The end is set by success, not by seconds or steps: one and the same number of updates leaves some seeds at a success
from which reinforcement learning never starts. A warm-up without any success stops the run, unless none was asked for.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.resource_use import Stopwatch
from manyturn.trainers.run.setup.run import Run
from manyturn.trainers.run.warmup.demonstrations import Demonstrations, demonstrations
from manyturn.trainers.run.warmup.failure_cause import Measurement, plateau, without_success
from manyturn.trainers.run.warmup.shared_warmup import take_warmup


@dataclass
class WarmupProgress:
    """The progress of a warm-up.

    Attributes:
        updates: that were made, up to a measurement.
        history: the loss of the first update, and the measurements.
        stood: whether a plateau was named already.
    """

    updates: int = 0
    history: list[Measurement] = field(default_factory=list)
    stood: bool = False

    def plain(self) -> dict[str, Any]:
        """JSON values for a checkpoint."""
        return {**vars(self), "history": [vars(measurement) for measurement in self.history]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of ``plain``; nothing is the start."""
        return cls(**{**plain, "history": [Measurement(**row) for row in plain.get("history", ())]})


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
    facts: dict[str, Any] = {"demonstrations": sum(map(len, shown.samples)), "updates": 0}
    if config.invalid:
        facts["invalid"] = shown.invalid
    cost = clock.lap("rollout")
    if not progress.updates:
        output.log({"phase": "demonstrations", "step": 0, **facts, **cost})
    warming = _Warming(run, output, progress, shown, clock)
    while progress.updates < config.max_updates:
        await warming.update()
        facts["updates"] = progress.updates
        if progress.updates % config.check_every == 0 or progress.updates == config.max_updates:
            facts["success"] = success = await warming.measure()
            if success is not None and success >= config.until_success:
                return facts, shown.shown
    _judge(run, progress.history, warming.played, shown, output.note)
    return facts, shown.shown


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
        self._batches = [_batches(len(own), config.batch, run.config.seed) for own in shown.samples]
        for batches in self._batches:
            next(itertools.islice(batches, progress.updates, progress.updates), None)  # those that were imitated
        self.played: list[Episode] = []
        self._losses, self._since, self._trained = dict[str, Any](), list[float](), 0

    @property
    def _rate(self) -> float:
        """The learning rate of the last update."""
        config = self._run.config.warmup
        return config.lr * (1 - 0.9 * (self._progress.updates - 1) / config.max_updates)

    async def update(self) -> None:
        """The next update, with a line after the first."""
        run, progress = self._run, self._progress
        progress.updates += 1
        self._losses, tokens = await _update(run, self._shown.samples, self._batches, self._rate, self._output.heed)
        self._since += self._losses.values()
        self._trained += tokens
        if progress.updates == 1:
            progress.history.append(Measurement(1, float(np.mean(self._since)), {}))
            line = {"phase": "imitation", "step": 0, "updates": 1, **self._losses}
            self._output.log({**line, **_cost(self._clock, self._trained), "lr": self._rate})
            self._trained = 0

    async def measure(self) -> float | None:
        """Play validation tasks and write a line; returns the success."""
        run, config, progress = self._run, self._run.config.warmup, self._progress
        updates, before = progress.updates, progress.history[-1].update if progress.history else 0
        cost, self._trained = _cost(self._clock, self._trained), 0
        self.played = await _validation(run, f"warmup/{updates}", config.check_episodes)
        cost |= self._clock.lap("rollout")
        metrics = run.describe(self.played)
        remaining = config.max_updates - updates
        pace = cost["learn_seconds"] / max(updates - before, 1)
        cost["warmup_left_seconds"] = remaining * pace + -(-remaining // config.check_every) * cost["rollout_seconds"]
        line = {"phase": "warmup", "step": 0, "updates": updates, **metrics, **self._losses, **cost}
        self._output.log({**line, "lr": self._rate})
        progress.history.append(Measurement(updates, float(np.mean(self._since)), metrics))
        self._since.clear()
        success = metrics["success"]
        if remaining and (success is None or success < config.until_success):
            if not progress.stood and (reason := plateau(run, progress.history, self.played, self._shown)):
                progress.stood = True
                self._output.note(reason)
            self._output.measured(progress)
        return success


async def _update(
    run: Run, samples: list[list[Sample]], batches: list[Iterator[list[int]]], rate: float, heed: Callable[[], None]
) -> tuple[dict[str, Any], int]:
    """One update of each policy; returns the losses, and how many tokens they were over."""
    losses, tokens = dict[str, Any](), 0
    for trainee, own, batch in zip(run.trainees, samples, batches, strict=True):
        chosen = [own[i] for i in next(batch)]
        measured = trainee.learner.imitate(chosen, rate, run.config.warmup.observed, heed)
        tokens += sum(map(len, chosen))
        losses |= trainee.labelled({"loss": measured["loss"]})
        await asyncio.sleep(0)  # lets a signal to stop be heard
    return losses, tokens


def _cost(clock: Stopwatch, trained: int) -> dict[str, float]:
    """The cost of the updates since the line before, over so many tokens."""
    return {**clock.lap("learn"), "trained_tokens": trained}


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


def _batches(count: int, size: int, seed: int) -> Iterator[list[int]]:
    """Numbers below ``count``, shuffled again each time they are used up."""
    order: list[int] = []
    for epoch in itertools.count():
        order += generator("imitate", seed, epoch).permutation(count).tolist()
        while len(order) >= min(size, count):
            yield order[:size]
            order = order[size:]


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
