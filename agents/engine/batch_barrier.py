"""The barrier of engines that compute in batches: a batch starts when every open episode has asked.

The composition of a batch then depends only on the episodes, and not on how long their environments took; only so
are log-probabilities the same to the bit.
"""

from collections.abc import Set
from typing import Protocol

from manyturn.agents.tokens.episode_key import EpisodeKey


class BarrierMember(Protocol):
    """An engine as its barrier sees it."""

    @property
    def episodes(self) -> Set[EpisodeKey]:
        """Open episodes, each of which may still ask."""
        ...

    @property
    def asking(self) -> int:
        """Requests that no batch has taken yet."""
        ...

    def consider(self) -> None:
        """Look, once everything that is ready has run, whether a batch can start."""

    def start(self) -> None:
        """Compute what waits, unless a batch is being computed."""


class BatchBarrier:
    """Engines that play the same episodes: their batches start when every open episode has asked one of them.

    Each would otherwise wait for episodes that wait for another.
    """

    def __init__(self) -> None:
        self.members: list[BarrierMember] = []

    def join(self, member: BarrierMember) -> None:
        """One more engine plays these episodes."""
        self.members.append(member)

    @property
    def all_asked(self) -> bool:
        """True if every open episode waits for a reply."""
        first, *others = self.members
        # An episode is open in several engines, and waits for one; of one engine there is nothing to put together.
        episodes = set(first.episodes).union(*(member.episodes for member in others)) if others else first.episodes
        return sum(member.asking for member in self.members) >= len(episodes)

    def consider(self) -> None:
        """Something has changed for one of the engines: each looks whether its batch can start."""
        for member in self.members:
            member.consider()

    def start(self) -> None:
        """Every open episode has asked: each engine computes what waits for it."""
        for member in self.members:
            member.start()
