"""The training loop, from the warm-up to the last update.

Each step draws tasks, plays a group of episodes of each, gives credit to their turns, updates the weights, and hands
them to the engine. Everything a step does depends on the configuration, the step's number and the weights; a run that
was killed continues from its last checkpoint to the same bits.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from manyturn.agents.episode import Policy
from manyturn.agents.evaluate import Evaluation, evaluate, held_out_guard
from manyturn.agents.scripted import Scripted
from manyturn.envs.durable import replace_text
from manyturn.envs.panel import make_panel
from manyturn.trainers.checkpoint import (
    CheckpointError,
    newest_checkpoint,
    read_state,
    read_tensors,
    save_checkpoint,
    weights_hash,
)
from manyturn.trainers.config import RunConfig
from manyturn.trainers.credit import credit
from manyturn.trainers.parts import Parts, open_parts
from manyturn.trainers.playing import play_step
from manyturn.trainers.rollouts import describe, draw_tasks, is_learnable, learnable, plan_groups, turn_batch
from manyturn.trainers.run_folder import RunFolder
from manyturn.trainers.samples import samples_of
from manyturn.trainers.stopping import Stopped, Stopping
from manyturn.trainers.summary import measured, summarise_run
from manyturn.trainers.turn_batch import BoolK, FloatK
from manyturn.trainers.warmup import validate, warm_up

Report = Callable[[dict[str, Any]], None]


@dataclass
class State:
    """What a run knows besides its weights; saved in each checkpoint.

    Attributes:
        step: steps that are done.
        seen: contents of all tasks that were learnt from.
        warmup: what the warm-up did.
        before: held-out figures of the warmed-up policy, by name.
        memory: what the credit stages remember from update to update.
        validated: the last step after which validation tasks were played.
        seconds: what the run took so far, over all processes that worked on it.
    """

    step: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    validated: int = 0
    seen: set[str] = field(default_factory=set)
    warmup: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "seen": sorted(self.seen)}


async def train(
    config: RunConfig | None, path: Path, *, resume: bool = False, report: Report = lambda line: None
) -> dict[str, Any]:
    """Run, or continue a run.

    Args:
        config: what to do; None when resuming, for then the folder's own counts.
        path: the run's folder.
        report: receives each line of metrics as it is written.

    Returns:
        The summary, which is written to ``summary.json`` too.

    Raises:
        Stopped: a signal asked for it; whatever was finished is saved.
        DiskFull, LearningFailed, TooManyErrors: the run cannot go on; it can be resumed from its last checkpoint.
    """
    began = time.monotonic()
    with RunFolder(path, resume) as folder, Stopping() as stopping:
        if config is None:
            config = folder.read_config()

        def log(line: dict[str, Any]) -> None:
            line = {"seconds": round(time.monotonic() - began, 3), **line}
            folder.log(line)
            report(line)

        async with open_parts(config) as parts:
            if not resume:
                folder.write_config(config)
            state = await stopping.run(_begin(parts, folder, log))
            earlier, went_on = state.seconds, time.monotonic()
            try:
                while state.step < config.steps or _validation_is_due(parts, state):
                    await stopping.run(_advance(parts, state, folder, log))
                    state.seconds = earlier + time.monotonic() - went_on
                    if not _validation_is_due(parts, state) and _checkpoint_is_due(config, state):
                        _save(parts, state, folder)
            except Stopped:
                _save(parts, state, folder, last=True)
                raise
            summary = await stopping.run(_conclude(parts, state, path))
            summary["seconds"] = round(earlier + time.monotonic() - went_on, 1)
            replace_text(path / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
            return summary


async def _advance(parts: Parts, state: State, folder: RunFolder, log: Report) -> None:
    """A step, or the validation that follows it; if it is cancelled, nothing has changed."""
    if not _validation_is_due(parts, state):
        folder.check_room()
        line = await train_step(parts, state, folder)
        log({"phase": "train", "step": state.step, **line})
        return
    found = await validate(parts, f"validation/{state.step}", parts.config.evaluation.every_limit)
    state.validated = state.step
    log({"phase": "validation", "step": state.step, **found})


def _validation_is_due(parts: Parts, state: State) -> bool:
    every = parts.config.evaluation.every
    return bool(every) and state.step % every == 0 and state.validated != state.step


def _checkpoint_is_due(config: RunConfig, state: State) -> bool:
    return state.step % config.checkpoint_every == 0 or state.step == config.steps


async def train_step(parts: Parts, state: State, folder: RunFolder) -> dict[str, Any]:
    """The next step; returns its metrics."""
    config, started, step = parts.config, time.monotonic(), state.step + 1
    tasks = draw_tasks(parts.train, config.rollout.tasks, config.seed, step)
    plan = plan_groups(tasks, config.rollout.group, config.seed, f"train/{step}")
    episodes = await play_step(parts, plan, folder, step)
    played = time.monotonic()

    kept = learnable(episodes)
    if not kept:
        causes = Counter(episode.cause for episode in episodes).most_common(3)
        raise RuntimeError(f"no episode of step {step} has a turn to learn from: {causes}; see agent.max_context")
    earned = credit(turn_batch(kept), config.credit, state.memory)
    columns = {"advantage": earned.advantage_K, **{f"{name}_advantage": level for name, level in earned.levels.items()}}
    learnt_K = np.concatenate([np.full(len(e.turns), is_learnable(e)) for e in episodes])
    folder.write_step(step, episodes, {name: _placed(learnt_K, column) for name, column in columns.items()})

    samples = samples_of(kept, earned.advantage_K, earned.token_T)
    learned = parts.learner.learn(samples, (step - 1) / config.steps, (config.seed, step))
    parts.publish()
    state.seen |= {task.content for task in tasks}
    state.step, state.memory = step, dict(earned.memory)
    return {
        **describe(episodes),
        **earned.diagnostics,
        "advantage_std": float(np.std(earned.advantage_K)),
        **learned,
        "version": parts.learner.updates,
        "rollout_seconds": round(played - started, 3),
        "learn_seconds": round(time.monotonic() - played, 3),
        "drawn_tokens": sum(int(sample.said.sum()) for sample in samples),
        "trained_tokens": sum(map(len, samples)),
    }


def _placed(learnt_K: BoolK, column: FloatK) -> FloatK:
    """A column over the turns that were learnt from, as one over all turns; NaN elsewhere."""
    out = np.full(len(learnt_K), np.nan)
    out[learnt_K] = column
    return out


async def held_out(parts: Parts, policy: Policy, seen: Collection[str] = (), out: Path | None = None) -> Evaluation:
    """Evaluate a policy on the pinned panel of held-out tasks; raises NotHeldOut if ``seen`` holds one of them."""
    config = parts.config
    told = config.evaluation
    panel = make_panel(parts.seats.tasks(told.split), config.env.id, told.split, told.limit, config.env.args)
    held_out_guard(panel, seen)
    return await evaluate(
        parts.seats,
        policy,
        panel,
        repeats=told.repeats,
        seed=config.seed,
        max_turns=config.rollout.max_turns,
        patience=parts.patience,
        label=f"{policy.name}, weights {weights_hash(parts.language)[:16]}" if out else policy.name,
        out=out,
    )


async def _figures(parts: Parts, state: State, name: str, out: Path | None = None) -> dict[str, Any]:
    """Held-out success of the present policy as it samples, and as it takes the likeliest token if that is asked."""
    found = {name: measured(await held_out(parts, parts.agent, state.seen, out))}
    if parts.config.evaluation.greedy:
        found[f"{name}_greedy"] = measured(await held_out(parts, parts.at_temperature(0.0)))
    return found


async def _conclude(parts: Parts, state: State, path: Path) -> dict[str, Any]:
    """Evaluate the final policy between floor and ceiling."""
    figures = {**state.before, **await _figures(parts, state, "after", path / "evaluation")}
    figures["random"] = measured(random := await held_out(parts, Scripted(1.0)))
    if parts.seats.has_expert:
        figures["expert"] = measured(await held_out(parts, Scripted(0.0)))
    facts = {
        "env": parts.config.env.id,
        "seed": parts.config.seed,
        "device": str(parts.language.model.device),
        "steps": state.step,
        "updates": parts.learner.updates,
        "warmup": state.warmup,
        "weights": weights_hash(parts.language),
    }
    panel = {"id": random.panel.id, "hash": random.panel.hash, "n_tasks": len(random.panel)}
    return summarise_run(panel, figures, facts)


async def _begin(parts: Parts, folder: RunFolder, log: Report) -> State:
    """The state to go on from: the newest whole checkpoint, or the end of the warm-up."""
    checkpoint, problems = newest_checkpoint(folder.checkpoints)
    if problems and checkpoint is None:
        raise CheckpointError(f"no checkpoint is whole ({problems[0]}): restore one, or begin anew in another folder")
    for problem in problems:
        print(f"passed over a damaged checkpoint: {problem}", file=sys.stderr)
    if checkpoint is not None:
        found = read_state(checkpoint)
        parts.learner.load_counts(found.pop("learner"))
        state = State(**{**found, "seen": set(found["seen"])})
        parts.language.load_weights(checkpoint / "model")
        parts.learner.load_tensors(read_tensors(checkpoint))
        parts.publish()
        folder.rewind(state.step)
        return state
    folder.rewind(-1)
    state = State()
    began = time.monotonic()
    state.warmup, state.seen = await warm_up(parts, log)
    parts.learner.begin_reinforcement()
    state.before = await _figures(parts, state, "before")
    state.seconds = time.monotonic() - began
    _save(parts, state, folder)
    return state


def _save(parts: Parts, state: State, folder: RunFolder, last: bool = False) -> None:
    """Write a checkpoint; one that the disk refuses is left out once, unless it is the last."""
    plain = {**state.plain(), "learner": parts.learner.counts()}
    tensors, keep = parts.learner.tensors(), parts.config.keep_checkpoints
    try:
        save_checkpoint(folder.checkpoints, state.step, parts.language, tensors, plain, keep)
    except (OSError, SafetensorError) as error:
        folder.not_saved(error, last or state.step in (0, parts.config.steps))
    else:
        folder.saved(state.step)
