"""The part of a run that takes longest, what limits it, and a change that makes it shorter."""

import os
from typing import NamedTuple

from manyturn.agents.engine.card.device_memory import main_memory
from manyturn.agents.model.models.tiny import TinyModel
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.forecast.run_estimate import RunEstimate

_MANY = 0.2  # share of replies that are cut from which sampling.max_tokens is worth a look
_FEW = 0.2  # share of groups with a signal below which a run teaches little
_FULL = 0.8  # share of the machine's memory


class Advice(NamedTuple):
    """The longest part of a run, and what makes it shorter."""

    limit: str
    change: str


def bottleneck(config: RunConfig, estimate: RunEstimate) -> Advice:
    """The advice on the longest part of a run."""
    longest = max(estimate.parts, key=lambda name: estimate.parts[name].seconds)
    advice = {
        "playing": _playing,
        "learning": _learning,
        "measuring": _measuring,
        "imitating": _imitating,
    }
    if longest in advice:
        return advice[longest](config, estimate)
    changes = {
        "demonstrations": f"fewer demonstrations: warmup.episodes is {config.warmup.episodes}",
        "exploring": "fewer episodes of exploration: progress.exploration.episodes or value.pretraining.episodes",
        "loading": "nothing: the run is short",
        "rest": "a faster disk for the run's folder",
    }
    return Advice(longest, changes[longest])


def warnings(config: RunConfig, estimate: RunEstimate) -> list[Advice]:
    """Advice on what else a trial has shown: groups without a signal, cut replies, memory that is nearly full."""
    remarks, line = list[Advice](), estimate.line
    if not config.warmup.imitates and estimate.signal is not None and estimate.signal < _FEW:
        success = line.get("success") or 0.0
        change = "easier tasks, or a warm-up by imitation" if success < 1 / 2 else "harder tasks"
        remarks.append(Advice(f"{estimate.signal:.0%} of groups have a signal", f"{change}, or a larger rollout.group"))
    if (line.get("cut") or 0.0) > _MANY:
        limit = config.sampling.max_tokens
        remarks.append(Advice(f"{line['cut']:.0%} of replies are cut", f"a sampling.max_tokens above {limit}"))
    if estimate.memory_mb.get("peak_memory_mb", 0.0) * 1e6 > _FULL * main_memory()[0]:
        remarks.append(Advice("main memory is nearly full", "a lower learner.micro_tokens or rollout.concurrency"))
    return remarks


def _playing(config: RunConfig, estimate: RunEstimate) -> Advice:
    line = estimate.line
    seconds = line.get("rollout_seconds") or 0.0
    turns = (line.get("turns") or 0.0) * estimate.amounts.step_episodes
    places = min(config.rollout.concurrency, estimate.amounts.step_episodes)
    workers = min((env.workers for env in config.environments.values()), default=0)
    env = (line.get("env_turn_seconds") or 0.0) * turns / min(places, workers or 1)
    model = {"drawing replies": line.get("draw_seconds") or 0.0, "reading prompts": line.get("read_seconds") or 0.0}
    shares = {**model, "the environment": min(env, max(0.0, seconds - sum(model.values())))}
    limit = max(shares, key=lambda name: shares[name])
    if shares[limit] < seconds / 3:
        return Advice("playing, outside the model and the environment", _fewer(config))
    change = {
        "the environment": f"env.workers above {workers}, as far as there are CPU cores ({os.cpu_count()} here)",
        "drawing replies": f"shorter replies ({line.get('reply_tokens') or 0.0:.0f} tokens in the mean), or "
        + _fewer(config),
        "reading prompts": f"a smaller agent.max_context (now {config.agent.max_context}), or {_fewer(config)}",
    }
    return Advice(f"playing: {limit}, {shares[limit] / max(seconds, 1e-9):.0%} of the time", change[limit])


def _fewer(config: RunConfig) -> str:
    rollout = config.rollout
    return f"fewer episodes in a step: rollout.tasks x rollout.group is {rollout.tasks} x {rollout.group}"


def _learning(config: RunConfig, estimate: RunEstimate) -> Advice:
    changes = _threads(config)
    if config.learner.packing == "padding":
        changes.append("learner.packing = 'trie', which computes shared beginnings once")
    if config.learner.epochs > 1:
        changes.append(f"learner.epochs below {config.learner.epochs}")
    if not changes:
        changes.append("a smaller model, shorter episodes, or " + _fewer(config))
    return Advice("learning", "; ".join(changes))


def _imitating(config: RunConfig, estimate: RunEstimate) -> Advice:
    warmup = config.warmup
    end = f"it ends earlier at success {warmup.until_success:g}" if warmup.until_success else "all of them are made"
    changes = [*_threads(config), f"a warmup.max_updates below {warmup.max_updates}"]
    if warmup.until_success:
        changes.append(f"a warmup.until_success below {warmup.until_success:g}")
    return Advice(f"imitating: at most {warmup.max_updates:,} updates, and {end}", "; ".join(changes))


def _measuring(config: RunConfig, estimate: RunEstimate) -> Advice:
    evaluation = config.evaluation
    changes = [f"an evaluation.limit below {evaluation.limit}"]
    if evaluation.greedy:
        changes.append("evaluation.greedy = false")
    if evaluation.every:
        changes.append(f"an evaluation.every above {evaluation.every}")
    return Advice("measuring success", "; ".join(changes))


def _threads(config: RunConfig) -> list[str]:
    """A second thread, where a tiny model on a CPU has one and there are more cores."""
    if not isinstance(config.model, TinyModel) or config.threads != 1 or (os.cpu_count() or 1) < 2:
        return []
    return ["threads = 2, with which updates use two cores"]
