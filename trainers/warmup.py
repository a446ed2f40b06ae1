"""Supervised warm-up: imitate successful demonstrations until the policy reaches a success worth improving on.

The end is set by success, not by seconds or steps: one and the same number of updates leaves some seeds at a success
from which reinforcement learning never starts.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from manyturn.agents.agent import Demonstrator
from manyturn.agents.engine import EpisodeKey
from manyturn.agents.gather import gather
from manyturn.agents.scripted import Scripted
from manyturn.envs.keys import generator
from manyturn.trainers.config import ConfigError
from manyturn.trainers.parts import Parts
from manyturn.trainers.rollouts import describe, plan_groups
from manyturn.trainers.samples import Sample, samples_of

Log = Callable[[dict[str, Any]], None]


async def warm_up(parts: Parts, log: Log) -> tuple[dict[str, Any], set[str]]:
    """Imitate.

    Args:
        log: takes a line of metrics at each measurement.

    Returns:
        What happened, and the contents of the tasks that were shown.

    Raises:
        ConfigError: no demonstration reached the goal, so that there is nothing to imitate.
    """
    config = parts.config.warmup
    if not config.episodes:
        return {"updates": 0, "demonstrations": 0}, set()
    samples, shown = await _demonstrations(parts)
    told: dict[str, Any] = {"demonstrations": len(samples), "updates": 0}
    if not samples:
        raise ConfigError(_nothing_to_imitate(parts))
    order: list[int] = []
    epoch = 0
    for update in range(1, config.max_updates + 1):
        if len(order) < config.batch:
            order += generator("imitate", parts.config.seed, epoch).permutation(len(samples)).tolist()
            epoch += 1
        batch, order = order[: config.batch], order[config.batch :]
        rate = config.lr * (1 - 0.9 * (update - 1) / config.max_updates)
        measured = parts.learner.imitate([samples[i] for i in batch], rate)
        await asyncio.sleep(0)  # lets a signal to stop be heard
        told["updates"] = update
        if update % config.check_every == 0 or update == config.max_updates:
            parts.publish()
            found = await validate(parts, f"warmup/{update}", config.check_episodes)
            told["success"] = found["success"]
            log({"phase": "warmup", "step": 0, "updates": update, **found, "loss": measured["loss"], "lr": rate})
            if found["success"] is not None and found["success"] >= config.until_success:
                break
    parts.publish()
    return told, shown


def _nothing_to_imitate(parts: Parts) -> str:
    config = parts.config.warmup
    by = f"the expert with warmup.noise = {config.noise}" if parts.seats.has_expert else "chance (there is no expert)"
    mends = ["raise rollout.max_turns or the environment's own limit", "or agent.max_context"]
    mends.insert(0, "lower warmup.noise" if parts.seats.has_expert else "give the environment an expert()")
    return (
        f"none of the {min(config.episodes, len(parts.train))} demonstrations by {by} reached the goal, so that there "
        f"is nothing to imitate: {', '.join(mends)}, or set warmup.episodes = 0 to begin without a warm-up"
    )


async def validate(parts: Parts, stage: str, tasks: int) -> dict[str, Any]:
    """Play the first validation tasks once each with the present policy."""
    split = parts.seats.tasks("validation")
    chosen = [split[i] for i in range(min(tasks, len(split)))]
    plan = plan_groups(chosen, 1, parts.config.seed, stage)
    episodes = await gather(
        parts.seats,
        parts.agent,
        plan,
        max_turns=parts.config.rollout.max_turns,
        patience=parts.patience,
        breaker=parts.breaker,
    )
    return describe(episodes)


async def _demonstrations(parts: Parts) -> tuple[list[Sample], set[str]]:
    """Successful episodes of the expert, or of chance where there is no expert, in the agent's own tokens."""
    config, seed = parts.config.warmup, parts.config.seed
    teacher = Scripted(config.noise if parts.seats.has_expert else 1.0)
    count = min(config.episodes, len(parts.train))
    numbers = generator("demonstrations", seed).choice(len(parts.train), size=count, replace=False)
    tasks = [parts.train[int(n)] for n in numbers]
    plan = [(task, EpisodeKey(seed, "demonstration", task.id, 0)) for task in tasks]
    episodes = await gather(
        parts.seats,
        Demonstrator(parts.agent, teacher),
        plan,
        max_turns=parts.config.rollout.max_turns,
        patience=parts.patience,
        breaker=parts.breaker,
    )
    good = [episode for episode in episodes if episode.success]
    samples = samples_of(good)
    if config.observed:
        samples = [_with_observed(sample, config.observed) for sample in samples]
    return samples, {episode.task.content for episode in good}


def _with_observed(sample: Sample, weight: float) -> Sample:
    """The sample as if all were said, but the observed with this weight; nothing foretells a first token."""
    return replace(sample, said=np.arange(len(sample)) > 0, advantage=np.where(sample.said, 1.0, weight))
