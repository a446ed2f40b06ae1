"""Supervised warm-up: imitate successful demonstrations until the policy reaches a success worth improving on.

The end is set by success, not by seconds or steps: one and the same number of updates leaves some seeds at a success
from which reinforcement learning never starts. A warm-up without any success stops the run, unless none was asked for.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.keys import generator
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.play.rollout.rollouts import describe, plan_groups
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.record.stopwatch import Stopwatch
from manyturn.trainers.run.setup.run import Run
from manyturn.trainers.run.warmup.demonstrations import Demonstrations, demonstrations
from manyturn.trainers.run.warmup.failure_cause import Measurement, without_success
from manyturn.trainers.run.warmup.shared_warmup import take_warmup


async def warm_up(
    run: Run, log: Log, note: Callable[[str], None], heed: Callable[[], None] = lambda: None
) -> tuple[dict[str, Any], set[str]]:
    """Imitate, or take over what another run has learnt by it.

    Args:
        log: takes a line of metrics when demonstrations are there, after the first update, and at each measurement.
        note: takes what else there is to say.
        heed: raises where the run was asked to stop, of which nothing would be kept.

    Returns:
        What happened, and the contents of the tasks that were shown.

    Raises:
        ConfigError: there is nothing to imitate or take over, or the policy could not say or read what was shown.
        LearningFailed: it ended without a success.
    """
    config = run.config.warmup
    if config.from_run is not None:
        taken, seen = take_warmup(run)
        note(f"the warm-up is that of {config.from_run}, with {taken['updates']} updates")
        return taken, seen
    if not config.episodes:
        return {"updates": 0, "demonstrations": 0}, set()
    clock = Stopwatch()
    shown = await demonstrations(run, note)
    facts: dict[str, Any] = {"demonstrations": sum(map(len, shown.samples)), "updates": 0}
    if config.invalid:
        facts["invalid"] = shown.invalid
    log({"phase": "demonstrations", "step": 0, **facts, **clock.lap("rollout")})
    batches = [_batches(len(own), config.batch, run.config.seed) for own in shown.samples]
    history, since, played, trained = list[Measurement](), list[float](), list[Episode](), 0
    for update in range(1, config.max_updates + 1):
        rate = config.lr * (1 - 0.9 * (update - 1) / config.max_updates)
        losses, tokens = await _update(run, shown.samples, batches, rate, heed)
        since += losses.values()
        trained += tokens
        facts["updates"] = update
        if update == 1:
            history.append(Measurement(1, float(np.mean(since)), {}))
            log({"phase": "imitation", "step": 0, "updates": 1, **losses, **_cost(clock, trained), "lr": rate})
            trained = 0
        if update % config.check_every == 0 or update == config.max_updates:
            cost, trained = _cost(clock, trained), 0
            played = await _validation(run, f"warmup/{update}", config.check_episodes)
            cost |= clock.lap("rollout")
            metrics = describe(played, run.roles, run.seats.part_names)
            facts["success"] = metrics["success"]
            log({"phase": "warmup", "step": 0, "updates": update, **metrics, **losses, **cost, "lr": rate})
            history.append(Measurement(update, float(np.mean(since)), metrics))
            since.clear()
            if metrics["success"] is not None and metrics["success"] >= config.until_success:
                return facts, shown.shown
    _judge(run, history, played, shown, note)
    return facts, shown.shown


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
    return describe(await _validation(run, stage, tasks), run.roles, run.seats.part_names)


async def _validation(run: Run, stage: str, tasks: int) -> list[Episode]:
    split = run.seats.tasks("validation")
    chosen = [split[i] for i in range(min(tasks, len(split)))]
    plan = plan_groups(chosen, 1, run.config.seed, stage)
    async with run.drawing():
        return await gather(
            run.seats,
            run.policy(),
            plan,
            max_turns=run.config.rollout.max_turns,
            patience=run.patience,
            breaker=run.breaker,
        )
