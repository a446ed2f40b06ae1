"""Episodes of the single roles, split from an episode of several: what each role saw, said and earned.

A reward part named ``ROLE.PART`` is that role's, whoever's turn earned it; any other belongs to all. A role gets
it at its last turn up to then: that is when it could still do something about it. What comes before its first turn is
left out.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyturn.agents.play.episode import Episode, TurnRecord
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.env.roles import ONE_ROLE, owner_of


class RoleView(NamedTuple):
    """One role's part of an episode.

    Attributes:
        role: its name.
        episode: its turns, with the rewards that are its own; its key's task names the role too, because the roles
            of a task are not each other's group.
        places: the places of its turns among those of the full episode.
    """

    role: str
    episode: Episode
    places: list[int]


def role_views(episode: Episode, roles: Sequence[str]) -> list[RoleView]:
    """A view for each role that had a turn, in the order of ``roles``; of one role, the episode as it is."""
    if len(roles) == 1:
        return [RoleView(roles[0], episode, list(range(len(episode.turns))))]
    views = []
    for role in roles:
        places = [place for place, turn in enumerate(episode.turns) if turn.role == role]
        if places:
            turns = _earned(episode.turns, role, places, roles)
            key = episode.key._replace(task=group_name(episode.key.task, role, roles))
            ledger = None if episode.ledger is None else _own(episode.ledger, places, role)
            views.append(RoleView(role, replace(episode, key=key, turns=turns, ledger=ledger), places))
    return views


def returns_by_role(episode: Episode, roles: Sequence[str]) -> dict[str, float]:
    """Return of each role in an episode; NaN for one that had no turn, and after an error."""
    earned = {view.role: view.episode.outcome for view in role_views(episode, roles)}
    return {role: earned.get(role, float("nan")) for role in roles}


@dataclass(frozen=True)
class EpisodeRoles:
    """Roles of an episode, and those among them that learn: groups are judged by what these earn.

    Attributes:
        all: every role, since a reward part is that of the role in its name.
        learning: those in which a policy in training plays.
    """

    all: tuple[str, ...] = (ONE_ROLE,)
    learning: tuple[str, ...] = (ONE_ROLE,)

    def returns(self, episodes: Sequence[Episode]) -> list[NDArray[np.float64]]:
        """Returns of the episodes (E), an array for each role that learns."""
        earned = [returns_by_role(episode, self.all) for episode in episodes]
        return [np.array([returns[role] for returns in earned]) for role in self.learning]


ONLY_ROLE = EpisodeRoles()
"""The role of environments that have one."""


def group_name(task: str, role: str, roles: Collection[str]) -> str:
    """Name of the group of a role's episodes of a task, among several ``roles``."""
    return f"{task}#{role}" if len(roles) > 1 else task


def _earned(turns: Sequence[TurnRecord], role: str, places: Sequence[int], roles: Collection[str]) -> list[TurnRecord]:
    parts: list[dict[str, float]] = [{} for _ in places]
    own = -1  # how many of its own turns have been, less one
    for turn in turns:
        own += turn.role == role
        for part, value in turn.parts.items() if own >= 0 else ():
            owner, name = owner_of(part, roles)
            if owner in (None, role):
                parts[own][name] = parts[own].get(name, 0.0) + value
    return [
        replace(turns[place], parts=earned, reward=float(sum(earned.values())))
        for place, earned in zip(places, parts, strict=True)
    ]


def _own(ledger: Ledger, places: Sequence[int], role: str) -> Ledger:
    """The turns of a role, which are at these places, and the branches that hold them."""
    spans = [ledger.spans[place] for place in places]
    used = sorted({span.branch for span in spans})
    number = {branch: place for place, branch in enumerate(used)}
    unanswered = ledger.unanswered if ledger.unanswered and ledger.unanswered.role == role else None
    own = [replace(span, branch=number[span.branch]) for span in spans]
    labels = {turn: ledger.labels[place] for turn, place in enumerate(places) if place in ledger.labels}
    return Ledger([ledger.branches[branch] for branch in used], own, unanswered, labels=labels)
