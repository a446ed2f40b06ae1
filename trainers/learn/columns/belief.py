"""The columns "belief" and "prior" (K): how likely the policy is to give the true answer.

    belief    p after the turn, asked before the next reply; NaN after an episode's last turn
    prior     p before the first reply of the turn's episode

``learn/belief.py`` says how it is asked. NaN where no answer is known, or the policy has no room to say it.
Source: Information Gain-based Policy Optimization, arXiv 2510.14967.
"""

import time
from typing import Any, Literal

import numpy as np

from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class BeliefConfig(ColumnConfig):
    name: Literal["belief"] = "belief"
    gives = frozenset({"belief", "prior"})

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if fault := run.agent.refuse_inner("asks for the true answer before each reply"):
            return fault
        if run.agent.only_admissible:
            return (
                "asks how likely the true answer is as a reply, which need not be an admissible command: leave "
                "agent.only_admissible or that stage out"
            )
        if env is None or env.has_answer:
            return None
        return (
            f"asks for the true answer, and {env.name} does not provide it: override answer() in the environment, or "
            "leave that stage out"
        )


@COLUMNS.register(BeliefConfig)
def belief(step: PlayedStep, config: BeliefConfig) -> Supplied:
    """Beliefs, the mean of the first and the last ones, and how long it took to ask."""
    began = time.monotonic()
    belief_by_episode = _beliefs(step)
    columns = {
        "belief": np.concatenate([np.append(before[1:], np.nan) for before in belief_by_episode]),
        "prior": np.concatenate([np.full(len(before), before[0]) for before in belief_by_episode]),
    }
    prior, last = np.nanmean([before[[0, -1]] for before in belief_by_episode], axis=0).tolist()
    return Supplied(
        columns, figures={"prior": prior, "belief": last, "belief_seconds": round(time.monotonic() - began, 3)}
    )


def _beliefs(step: PlayedStep) -> list[FloatK]:
    """The probability of the true answer before each reply, one array for each episode."""
    from manyturn.trainers.learn.reading.belief import (  # torch, which a recipe is checked without
        Forced,
        Questions,
        believed,
    )

    agent, reader, rows, owners = step.agent, step.reading.reader, list[Questions](), list[int]()
    belief_by_episode = [np.full(len(episode.turns), np.nan) for episode in step.episodes]
    for number, episode in enumerate(step.episodes):
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
            "the environment's answer() is None in every episode of the step, or no reply of sampling.max_tokens = "
            f"{agent.sampling.max_tokens}: let it return the action that gives the true answer, or raise max_tokens"
        )
    beliefs = reader.budget.within(lambda: believed(reader.model, rows, reader.temperature, reader.budget))
    for number, row, belief_Q in zip(owners, rows, beliefs, strict=True):
        belief_by_episode[number][row.turns] = belief_Q
    return belief_by_episode
