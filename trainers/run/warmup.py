"""Supervised warm-up: imitate successful demonstrations until the policy reaches a success worth improving on.

The end is set by success, not by seconds or steps: one and the same number of updates leaves some seeds at a success
from which reinforcement learning never starts.
"""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

from manyturn.agents.episode_key import EpisodeKey
from manyturn.agents.gather import gather
from manyturn.agents.role_views import role_views
from manyturn.agents.scripted import Scripted
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.options import ConfigError
from manyturn.trainers.learn.imitation import imitate
from manyturn.trainers.learn.samples import Sample, samples_of
from manyturn.trainers.play.rollouts import describe, plan_groups
from manyturn.trainers.record.metrics import Log
from manyturn.trainers.run.run import Run


async def warm_up(run: Run, log: Log) -> tuple[dict[str, Any], set[str]]:
    """Imitate.

    Args:
        log: takes a line of metrics at each measurement.

    Returns:
        What happened, and the contents of the tasks that were shown.

    Raises:
        ConfigError: no demonstration reached the goal, so that there is nothing to imitate.
    """
    config = run.config.warmup
    if not config.episodes:
        return {"updates": 0, "demonstrations": 0}, set()
    samples, shown = await _demonstrations(run)
    told: dict[str, Any] = {"demonstrations": sum(map(len, samples)), "updates": 0}
    if not all(samples):
        raise ConfigError(_nothing_to_imitate(run))
    batches = [_batches(len(own), config.batch, run.config.seed) for own in samples]
    for update in range(1, config.max_updates + 1):
        rate = config.lr * (1 - 0.9 * (update - 1) / config.max_updates)
        losses: dict[str, Any] = {}
        for trainee, own, batch in zip(run.trainees, samples, batches, strict=True):
            measured = imitate(trainee.learner, [own[i] for i in next(batch)], rate, config.observed)
            losses |= trainee.labelled({"loss": measured["loss"]})
            await asyncio.sleep(0)  # lets a signal to stop be heard
        told["updates"] = update
        if update % config.check_every == 0 or update == config.max_updates:
            found = await validate(run, f"warmup/{update}", config.check_episodes)
            told["success"] = found["success"]
            log({"phase": "warmup", "step": 0, "updates": update, **found, **losses, "lr": rate})
            if found["success"] is not None and found["success"] >= config.until_success:
                break
    return told, shown


def _batches(count: int, size: int, seed: int) -> Iterator[list[int]]:
    """Numbers below ``count``, shuffled again each time they are used up."""
    order: list[int] = []
    for epoch in itertools.count():
        order += generator("imitate", seed, epoch).permutation(count).tolist()
        while len(order) >= min(size, count):
            yield order[:size]
            order = order[size:]


def _nothing_to_imitate(run: Run) -> str:
    config = run.config.warmup
    expert = f"the expert with warmup.noise = {config.noise}"
    by = expert if run.seats.has_expert else "a random policy (there is no expert)"
    fixes = ["raise rollout.max_turns or the environment's own limit", "or agent.max_context"]
    fixes.insert(0, "lower warmup.noise" if run.seats.has_expert else "give the environment an expert()")
    return (
        f"none of the {min(config.episodes, len(run.train))} demonstrations by {by} reached the goal, so that there "
        f"is nothing to imitate: {', '.join(fixes)}, or set warmup.episodes = 0 to begin without a warm-up"
    )


async def validate(run: Run, stage: str, tasks: int) -> dict[str, Any]:
    """Play the first validation tasks once each with the present policy."""
    split = run.seats.tasks("validation")
    chosen = [split[i] for i in range(min(tasks, len(split)))]
    plan = plan_groups(chosen, 1, run.config.seed, stage)
    async with run.drawing():
        episodes = await gather(
            run.seats,
            run.policy(),
            plan,
            max_turns=run.config.rollout.max_turns,
            patience=run.patience,
            breaker=run.breaker,
        )
    return describe(episodes, run.roles)


async def _demonstrations(run: Run) -> tuple[list[list[Sample]], set[str]]:
    """Successful episodes of the expert, or of a random policy without one, in each policy's own tokens."""
    config, seed = run.config.warmup, run.config.seed
    teacher = Scripted(config.noise if run.seats.has_expert else 1.0)
    count = min(config.episodes, len(run.train))
    numbers = generator("demonstrations", seed).choice(len(run.train), size=count, replace=False)
    tasks = [run.train[int(n)] for n in numbers]
    plan = [(task, EpisodeKey(seed, "demonstration", task.id, 0)) for task in tasks]
    episodes = await gather(
        run.seats,
        run.demonstrator(teacher),
        plan,
        max_turns=run.config.rollout.max_turns,
        patience=run.patience,
        breaker=run.breaker,
    )
    good = [episode for episode in episodes if episode.success]
    parted = [view for episode in good for view in role_views(episode, run.roles)]
    samples = [samples_of([view.episode for view in parted if view.role in t.roles]) for t in run.trainees]
    return samples, {episode.task.content for episode in good}
