"""One step of reinforcement learning: draw tasks, play groups of episodes, give credit to their turns, update."""

import time
from collections import Counter
from typing import Any

import numpy as np

from manyturn.trainers.branching import drawn_tokens, repeats
from manyturn.trainers.columns import DRIFT, batch_of
from manyturn.trainers.credit import credit
from manyturn.trainers.curricula.findings import findings
from manyturn.trainers.curricula.pool import Found, Pool
from manyturn.trainers.curricula.refill import Refill
from manyturn.trainers.drift import visited
from manyturn.trainers.parts import Parts
from manyturn.trainers.playing import play_groups, starts_of
from manyturn.trainers.rewards.parts import outcome_E
from manyturn.trainers.rollouts import describe, is_learnable, plan_groups
from manyturn.trainers.run_folder import RunFolder
from manyturn.trainers.samples import samples_of
from manyturn.trainers.stages import CURRICULA, Memory
from manyturn.trainers.state import State
from manyturn.trainers.turn_batch import BoolK, FloatK


async def train_step(parts: Parts, state: State, folder: RunFolder) -> dict[str, Any]:
    """The next step; returns its metrics. Until the update nothing of the run changes."""
    config, started, step = parts.config, time.monotonic(), state.step + 1
    refill, numbers, memory = await _play_rounds(parts, state, folder)
    played, episodes = time.monotonic(), refill.played
    learnt_E = [kept and is_learnable(episode) for episode, kept in zip(episodes, refill.kept, strict=True)]
    kept = [episode for episode, learnt in zip(episodes, learnt_E, strict=True) if learnt]
    if not kept:
        causes = Counter(episode.cause for episode in episodes).most_common(3)
        raise RuntimeError(f"no episode of step {step} has a turn to learn from: {causes}; see agent.max_context")
    batch, figures = batch_of(parts, kept, memory)
    earned = credit(batch, config.credit, memory)
    columns = {"advantage": earned.advantage_K, **{f"{name}_advantage": level for name, level in earned.levels.items()}}
    learnt_K = np.repeat(learnt_E, [len(episode.turns) for episode in episodes])
    begun = starts_of(parts, [episode.key for episode in episodes], {episode.key: episode for episode in episodes})
    placed = {name: _placed(learnt_K, column) for name, column in columns.items()}
    if config.rollout.branching is not None:
        placed["repeats_member"] = repeats(episodes, begun)
        figures["branched"] = float(np.mean([fork is not None for fork in begun.values()]))
    folder.write_step(step, episodes, placed)

    samples = samples_of(kept, earned.advantage_K, earned.token_T)
    learned = parts.learner.learn(
        samples,
        (step - 1) / config.steps,
        (config.seed, step),
        earned.targets_T,
        None if config.progress is None else outcome_E(batch),
    )
    parts.publish()
    state.seen |= {parts.train[number].content for number in numbers.values()}
    state.found = [list(found) for found in findings(episodes, numbers, earned)]
    state.step, state.memory = step, dict(earned.memory)
    if DRIFT in config.credit.needs:
        state.memory[DRIFT] = visited(memory.get(DRIFT, {}), kept)
    return {
        **describe(episodes),
        **figures,
        **earned.diagnostics,
        "rounds": refill.round,
        "advantage_std": float(np.std(earned.advantage_K)),
        **learned,
        "version": parts.learner.updates,
        "rollout_seconds": round(played - started, 3),
        "learn_seconds": round(time.monotonic() - played, 3),
        "drawn_tokens": drawn_tokens(kept, begun),
        "trained_tokens": sum(map(len, samples)),
    }


async def _play_rounds(parts: Parts, state: State, folder: RunFolder) -> tuple[Refill, dict[str, int], Memory]:
    """Play groups until the step is complete.

    Returns:
        The episodes, task id -> number of each task that was drawn, and what the curriculum remembers.
    """
    config, rollout, step = parts.config, parts.config.rollout, state.step + 1
    refill, numbers, memory = Refill(rollout.tasks, rollout.group, rollout.rounds), dict[str, int](), state.memory
    feedback = [Found(*row) for row in state.found]
    while refill.missing:
        pool = Pool(parts.train, refill.missing, config.seed, step, feedback, frozenset(numbers.values()))
        drawn, memory = CURRICULA.apply_remembering(config.curriculum, memory, pool)
        tasks = [parts.train[number] for number in drawn]
        numbers |= {task.id: number for task, number in zip(tasks, drawn, strict=True)}
        stage = f"train/{step}/{refill.round}" if refill.round else f"train/{step}"
        plan = plan_groups(tasks, rollout.group, config.seed, stage)
        refill = refill.after(await play_groups(parts, plan, folder, step, refill.round))
        feedback = []  # it is given once
    return refill, numbers, memory


def _placed(learnt_K: BoolK, column: FloatK) -> FloatK:
    """A column over the turns that were learnt from, as one over all turns; NaN elsewhere."""
    out = np.full(len(learnt_K), np.nan)
    out[learnt_K] = column
    return out
