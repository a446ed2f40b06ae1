"""The batch of a step, with the columns that its credit needs and only the learner can tell.

Everything is asked of the weights that played, before the step's update. What nobody needs is not computed.
"""

import time
from collections.abc import Sequence

import numpy as np

from manyturn.agents.episode import Episode
from manyturn.agents.role_views import own_parts
from manyturn.envs.contract.registry import Memory
from manyturn.trainers.credit.reward_parts import outcome_E
from manyturn.trainers.credit.turn_batch import FloatK, FloatT, TurnBatch
from manyturn.trainers.learn.belief import Forced, Questions
from manyturn.trainers.learn.drift import drift
from manyturn.trainers.learn.samples import samples_of
from manyturn.trainers.play.rollouts import turn_batch
from manyturn.trainers.run.run import Run
from manyturn.trainers.run.trainee import Trainee

DRIFT = "drift"


def batch_of(
    run: Run, trainee: Trainee, episodes: Sequence[Episode], memory: Memory
) -> tuple[TurnBatch, dict[str, float]]:
    """The turns of the episodes, and figures on what was asked.

    Args:
        trainee: the policy that played them.
        memory: what its credit remembers from step to step; drift is measured against it.
    """
    config, learner, needs = run.config, trainee.learner, run.config.credit.needs
    columns, token_columns, figures = dict[str, FloatK](), dict[str, FloatT](), dict[str, float]()
    samples = samples_of(episodes)
    if config.value is not None:
        token_columns["value"] = np.concatenate(learner.values(samples))
    if config.progress is not None:
        columns["contribution"] = np.concatenate(learner.contributions(samples))
    if config.objective.kl is not None and config.objective.kl.place == "reward":
        token_columns["reward"] = -np.concatenate(learner.kl_costs(samples))
    if needs.keys() & {"belief", "prior"}:
        began = time.monotonic()
        asked = _asked(run, trainee, episodes)
        columns["belief"] = np.concatenate([np.append(before[1:], np.nan) for before in asked])
        columns["prior"] = np.concatenate([np.full(len(before), before[0]) for before in asked])
        figures["prior"], figures["belief"] = np.nanmean([before[[0, -1]] for before in asked], axis=0).tolist()
        figures["belief_seconds"] = round(time.monotonic() - began, 3)
    if DRIFT in needs:
        columns[DRIFT] = _drifts(trainee, episodes, memory)
        known_K = columns[DRIFT][~np.isnan(columns[DRIFT])]
        figures[DRIFT] = float(known_K.mean()) if len(known_K) else float("nan")
    batch = turn_batch(episodes, own_parts(run.seats.part_names, run.roles), columns, token_columns)
    if "contribution" in columns:
        figures["contribution_error"] = _unexplained(batch)
    return batch, figures


def _unexplained(batch: TurnBatch) -> float:
    """Mean over scorable episodes of how far the contributions of its turns are from adding up to the outcome."""
    missing = outcome_E(batch) - np.bincount(batch.episode_K, batch.column("contribution"), len(batch.truncated_E))
    known = np.isfinite(missing)
    return float(np.abs(missing[known]).mean()) if known.any() else float("nan")


def _asked(run: Run, trainee: Trainee, episodes: Sequence[Episode]) -> list[FloatK]:
    """The probability of the true answer before each reply, one array for each episode.

    NaN where no answer is known, or the policy has no room to say it.
    """
    agent, rows, owners = trainee.agent, list[Questions](), list[int]()
    asked = [np.full(len(episode.turns), np.nan) for episode in episodes]
    for number, episode in enumerate(episodes):
        if episode.answer is None:
            continue
        assert episode.ledger is not None, "only episodes with a token ledger can be learnt from"
        forced = Forced.of(episode.answer, agent.config, agent.template)
        if forced.tokens > agent.sampling.max_tokens:
            continue
        for branch in range(len(episode.ledger.branches)):
            rows.append(Questions.of(episode.ledger, branch, forced))
            owners.append(number)
    if not rows:
        raise ValueError(
            f"answer() of {run.seats.name} is None in every episode of the step, or no reply of sampling.max_tokens "
            f"= {agent.sampling.max_tokens}: let it return the action that gives the true answer, or raise max_tokens"
        )
    for number, row, found in zip(owners, rows, trainee.learner.beliefs(rows), strict=True):
        asked[number][row.turns] = found
    return asked


def _drifts(trainee: Trainee, episodes: Sequence[Episode], memory: Memory) -> FloatK:
    """The drift of each turn's task; NaN where it was not played before."""
    tasks = dict.fromkeys(episode.key.task for episode in episodes)
    moved = drift(memory.get(DRIFT, {}), tasks, trainee.learner.logprobs)
    return np.concatenate([np.full(len(e.turns), moved.get(e.key.task, np.nan)) for e in episodes])
