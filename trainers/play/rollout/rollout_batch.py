"""Rollouts: which tasks a step draws, and their episodes as a batch of turns."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.play.role_episodes import returns_by_role
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.env.roles import ONE_ROLE, PARTS
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.credit.batch.turn_batch import TurnBatch


def plan_groups(tasks: Sequence[Task], group: int, seed: int, stage: str) -> list[tuple[Task, EpisodeKey]]:
    """Each task ``group`` times, the members of a group next to each other; a task that comes twice has one group."""
    plan, members = [], Counter[str]()
    for task in tasks:
        first = members[task.id]
        members[task.id] += group
        plan += [(task, EpisodeKey(seed, stage, task.id, member)) for member in range(first, first + group)]
    return plan


def is_learnable(episode: Episode) -> bool:
    """True if the episode took part: errors leave their group, and so does an episode without an action."""
    return not episode.ending.is_error and bool(episode.actions)


def learnable(episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes that took part."""
    return [episode for episode in episodes if is_learnable(episode)]


def turn_batch(episodes: Sequence[Episode], part_names: Iterable[str] = ()) -> TurnBatch:
    """The turns of E episodes as arrays, without columns; rewards that a turn does not name are 0.

    Args:
        part_names: parts that the environment lists, which are there even if no turn earned them.
    """
    # The outcome is there although no episode of this batch may have earned one.
    earned = {name for episode in episodes for turn in episode.turns for name in turn.parts}
    names = sorted({OUTCOME, *earned, *part_names})
    return TurnBatch.from_episodes(
        {name: [[turn.parts.get(name, 0.0) for turn in episode.turns] for episode in episodes] for name in names},
        groups=[episode.key.task for episode in episodes],
        anchors=[[turn.anchor for turn in episode.turns] for episode in episodes],
        anchor_texts=[[turn.anchor_text for turn in episode.turns] for episode in episodes],
        format_valid=[[turn.format_valid for turn in episode.turns] for episode in episodes],
        understood=[[turn.understood for turn in episode.turns] for episode in episodes],
        tokens=[reply_lengths(episode) for episode in episodes],
        truncated=[episode.ending is Ending.TRUNCATED for episode in episodes],
        inner=[[bool(turn.inner) for turn in episode.turns] for episode in episodes],
    )


def reply_lengths(episode: Episode) -> list[int]:
    """Tokens of each of the K replies; 0 for policies without tokens."""
    if episode.ledger is None:
        return [0] * len(episode.turns)
    return [span.end - span.start for span in episode.ledger.spans[: len(episode.turns)]]


def unscorable(episode: Episode) -> str:
    """The place of the first reward that is not a number."""
    for number, turn in enumerate(episode.turns, 1):
        if math.isnan(turn.reward):
            names = [repr(name) for name, value in turn.parts.items() if math.isnan(value)]
            return f"{', '.join(names) or 'the reward'} at turn {number} of task {episode.task.id}"
    raise ValueError(f"all rewards of {episode.task.id} are numbers")


def describe(
    episodes: Sequence[Episode], roles: Sequence[str] = (ONE_ROLE,), part_names: Iterable[str] = ()
) -> dict[str, Any]:
    """The metrics of what was played.

    Args:
        roles: of an episode, where it has several: what each earned is given too.
        part_names: parts of rewards that the environment lists; where there are others than the outcome, the mean of
            each is given.
    """
    scored = [episode for episode in episodes if not episode.ending.is_error]
    turns = [turn for episode in scored for turn in episode.turns if not turn.inner]
    lengths = [n for episode in scored for n in reply_lengths(episode)]
    earned = {role: [returns_by_role(episode, roles)[role] for episode in scored] for role in roles if len(roles) > 1}

    answers = [(turn.seconds[1], episode.key.task) for episode in scored for turn in episode.turns if not turn.inner]
    slowest = max(answers, default=(None, None))

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if len(values) else None

    return {
        "success": mean([episode.success for episode in scored if episode.success is not None]),
        "return": mean([episode.outcome for episode in scored if not math.isnan(episode.outcome)]),
        "turns": mean([episode.actions for episode in scored]),
        **_inner(scored),
        "reply_tokens": mean(lengths),
        "invalid": mean([not turn.valid for turn in turns]),
        "broken_format": mean([not turn.format_valid for turn in turns]),
        "not_understood": mean([not turn.understood for turn in turns]),
        "cut": mean([turn.usage.cut for turn in turns if turn.usage is not None and turn.usage.cut is not None]),
        "truncated": mean([episode.ending is Ending.TRUNCATED for episode in scored]),
        "tampered": mean([episode.ending is Ending.TAMPERED for episode in scored]),
        "errors": len(episodes) - len(scored),
        "env_turn_seconds": mean([seconds for seconds, _ in answers]),
        "slowest_env_seconds": slowest[0],
        "slowest_task": slowest[1],
        "retried": mean([episode.attempts > 1 for episode in episodes]),
        **{f"{role}/return": mean([r for r in returns if not math.isnan(r)]) for role, returns in earned.items()},
        **_of_roles(turns, earned),
        **{f"{PARTS}{name}": mean(sums) for name, sums in _parts(scored, part_names).items()},
    }


def _inner(episodes: Sequence[Episode]) -> dict[str, float]:
    """Mean number of inner turns of an episode, of each kind that there is."""
    counts = Counter(turn.inner for episode in episodes for turn in episode.turns if turn.inner)
    return {f"{kind}/inner_turns": count / len(episodes) for kind, count in sorted(counts.items())}


def _of_roles(turns: Sequence[TurnRecord], roles: Iterable[str]) -> dict[str, float]:
    """Share of invalid turns of each role of several that had one, and the cost of those that are priced."""
    figures = dict[str, float]()
    for role in roles:
        own = [turn for turn in turns if turn.role == role]
        if own:
            figures[f"{role}/invalid"] = float(np.mean([not turn.valid for turn in own]))
        costs = [turn.usage.cost for turn in own if turn.usage is not None and turn.usage.cost is not None]
        if costs:
            figures[f"{role}/cost"] = float(sum(costs))
    return figures


def _parts(episodes: Sequence[Episode], listed: Iterable[str]) -> dict[str, list[float]]:
    """Name -> its sum in each episode, NaN left out; nothing where the outcome is all that is earned."""
    names = {*listed, *(name for episode in episodes for turn in episode.turns for name in turn.parts)}
    if not names - {OUTCOME}:
        return {}
    sums = {
        name: [sum(turn.parts.get(name, 0.0) for turn in episode.turns) for episode in episodes]
        for name in sorted({OUTCOME, *names})
    }
    return {name: [value for value in values if not math.isnan(value)] for name, values in sums.items()}
