"""An episode of several agents, taken apart: what each of them saw, said and earned is an episode of its own.

A reward part named ``AGENT.PART`` is that agent's, whoever's turn earned it; any other is everybody's. An agent gets
it at its last turn up to then: that is when it could still do something about it. What comes before its first turn is
left out.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from manyturn.agents.episode import Episode, TurnRecord
from manyturn.agents.ledger import Ledger


class RoleView(NamedTuple):
    """What one agent did in an episode.

    Attributes:
        agent: its name; empty where the episode has one agent.
        episode: its turns, with the rewards that are its own; its key's task names the agent too, because the agents
            of a task are not each other's group.
        places: where its turns stand among those of the whole episode.
    """

    agent: str
    episode: Episode
    places: list[int]


def role_views(episode: Episode, agents: Sequence[str]) -> list[RoleView]:
    """The shares of those who had a turn, in the order of ``agents``; the whole, where these are none."""
    if not agents:
        return [RoleView("", episode, list(range(len(episode.turns))))]
    found = []
    for agent in agents:
        places = [place for place, turn in enumerate(episode.turns) if turn.agent == agent]
        if places:
            turns = _earned(episode.turns, agent, places, agents)
            key = episode.key._replace(task=group_name(episode.key.task, agent))
            ledger = None if episode.ledger is None else _own(episode.ledger, places)
            found.append(RoleView(agent, replace(episode, key=key, turns=turns, ledger=ledger), places))
    return found


def returns_by_agent(episode: Episode, agents: Sequence[str]) -> dict[str, float]:
    """What each agent earned in an episode; NaN for one that had no turn, and after an error."""
    earned = {share.agent: share.episode.outcome for share in role_views(episode, agents)}
    return {agent: earned.get(agent, float("nan")) for agent in agents or ("",)}


def group_name(task: str, agent: str) -> str:
    """What the group of an agent's episodes of a task is known by."""
    return f"{task}#{agent}" if agent else task


def own_parts(names: Iterable[str], agents: Collection[str]) -> tuple[str, ...]:
    """Reward parts as the agents themselves know them, each once.

    >>> own_parts(["buyer.outcome", "seller.outcome", "patience"], ["buyer", "seller"])
    ('outcome', 'patience')
    """
    return tuple(dict.fromkeys(_owner(name, agents)[1] for name in names))


def _owner(part: str, agents: Collection[str]) -> tuple[str, str]:
    """Whose part it is, empty if everybody's, and what the owner calls it."""
    agent, dot, name = part.partition(".")
    return (agent, name) if dot and agent in agents else ("", part)


def _earned(
    turns: Sequence[TurnRecord], agent: str, places: Sequence[int], agents: Collection[str]
) -> list[TurnRecord]:
    parts: list[dict[str, float]] = [{} for _ in places]
    own = -1  # how many of its own turns have been, less one
    for turn in turns:
        own += turn.agent == agent
        for part, value in turn.parts.items() if own >= 0 else ():
            owner, name = _owner(part, agents)
            if owner in ("", agent):
                parts[own][name] = parts[own].get(name, 0.0) + value
    return [
        replace(turns[place], parts=earned, reward=float(sum(earned.values())))
        for place, earned in zip(places, parts, strict=True)
    ]


def _own(ledger: Ledger, places: Sequence[int]) -> Ledger:
    """The turns at these places, and the branches that they stand in."""
    spans = [ledger.spans[place] for place in places]
    used = sorted({span.branch for span in spans})
    number = {branch: place for place, branch in enumerate(used)}
    return Ledger([ledger.branches[b] for b in used], [replace(s, branch=number[s.branch]) for s in spans])
