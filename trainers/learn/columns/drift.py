"""The column "drift" (K): how far the policy has moved since the turn's task was last played.

    D_g = mean over the reply tokens of task g's previous episodes of |log-probability when drawn - log-probability now|

"Now" is before the step's updates. What is remembered of a task are the tokens of its last episodes, plain values, for
they are part of a checkpoint. NaN where the task was not played before, or is forgotten.

Source: Single-stream Policy Optimization, arXiv 2509.13232, which forgets by it what a task once earned. Its authors
take the learner's log-probability at the time for what is here the engine's; where an engine of another precision
draws, its error is part of the drift.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyturn.agents.text.command_tree import tree_of
from manyturn.agents.tokens.ledger import commands_from_plain, commands_to_plain
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied

if TYPE_CHECKING:
    from manyturn.agents.play.episode import Episode
    from manyturn.trainers.learn.passes.samples import Sample
    from manyturn.trainers.learn.reading.pre_update_pass import StepReading

# Its ids, the places of those that were said, their log-probabilities when drawn, what was possible at some places, and
# where there are such, the commands that whole replies were chosen among.
Branch = Sequence[Any]
Visits = Mapping[str, Sequence[Branch]]


class DriftConfig(ColumnConfig):
    name: Literal["drift"] = "drift"
    most_tokens: int = Field(default=2_000_000, ge=1)
    """Tokens that are remembered, of all tasks; beyond that the tasks longest unplayed are forgotten."""


@COLUMNS.register(DriftConfig, remembers=True)
def drift(step: PlayedStep, config: DriftConfig, visits: Visits | None) -> tuple[Supplied, Visits]:
    """The drift of each turn's task, and what to remember of it next time."""
    visits, names = visits or {}, [episode.key.task for episode in step.episodes]
    moved = drifts(visits, dict.fromkeys(names), step.reading)
    lengths_E = [len(episode.turns) for episode in step.episodes]
    drift_K = np.repeat([moved.get(name, np.nan) for name in names], lengths_E)
    known_K = drift_K[~np.isnan(drift_K)]
    figures = {"drift": float(known_K.mean()) if len(known_K) else float("nan")}
    return Supplied(columns={"drift": drift_K}, figures=figures), visited(visits, step.episodes, config.most_tokens)


def drifts(visits: Visits, tasks: Collection[str], reading: "StepReading") -> dict[str, float]:
    """D of each of these tasks that is remembered.

    Args:
        visits: what ``visited`` returned last time.
        reading: of the policy as it is now, which then reads the previous episodes.
    """
    owners = [task for task in tasks for _ in visits.get(task, ())]
    samples = [_sample(branch) for task in tasks for branch in visits.get(task, ())]
    moved: dict[str, list[np.ndarray]] = {task: [] for task in owners}
    now = reading.of(samples).logprob if samples else []
    for task, sample, row in zip(owners, samples, now, strict=True):
        moved[task].append(np.abs(sample.engine_logprob - row.numpy())[sample.reply_mask])
    return {task: float(np.concatenate(rows).mean()) for task, rows in moved.items()}


def visited(visits: Visits, episodes: "Sequence[Episode]", most: int) -> dict[str, list[list[Any]]]:
    """The memory after these episodes: for their tasks only these, for other tasks the earlier ones.

    Args:
        most: tokens that are remembered.
    """
    news: dict[str, list[list[Any]]] = {}
    for episode in episodes:
        assert episode.ledger is not None, "only episodes with a token ledger can be learnt from"
        for branch in episode.ledger.branches:
            places = np.flatnonzero(branch.reply_mask).tolist()
            allowed = [[place, list(tokens)] for place, tokens in branch.allowed.items()]
            row = [list(branch.ids), places, [branch.logprobs[place] for place in places], allowed]
            row += [commands_to_plain(branch)] if branch.commands else []
            news.setdefault(episode.key.task, []).append(row)
    memory = {task: [list(row) for row in rows] for task, rows in visits.items() if task not in news} | news
    tokens = sum(len(ids) for rows in memory.values() for ids, *_ in rows)
    for task in list(memory):
        if tokens <= most:
            break
        tokens -= sum(len(ids) for ids, *_ in memory.pop(task))
    return memory


def _sample(branch: Branch) -> "Sample":
    from manyturn.trainers.learn.passes.samples import Sample  # torch, which a configuration is checked without

    ids, places, logprobs, allowed, *lists = branch
    commands = {place: tree_of(replies) for of in lists for place, replies in commands_from_plain(of).items()}
    reply_mask, logprob = np.zeros(len(ids), bool), np.zeros(len(ids))
    reply_mask[places], logprob[places] = True, logprobs
    reply = np.where(reply_mask, 0, -1)
    return Sample(0, np.array(ids), reply_mask, logprob, reply, allowed=dict(allowed), commands=commands)
