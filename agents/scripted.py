"""Policies without a model: the expert, and random admissible commands."""

from collections.abc import Mapping

import numpy as np

from manyturn.agents.episode import Act, Player
from manyturn.agents.episode_key import EpisodeKey
from manyturn.agents.ledger import Ledger
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.roles import ONE_ROLE
from manyturn.envs.hosting.host import Answer
from manyturn.envs.hosting.seats import Seat


class Scripted:
    """Expert moves, of which a share is replaced by random admissible commands.

    Args:
        noise: share of random moves: 0 is the expert, 1 a random policy. A demonstrator that errs and recovers shows a
            learner how to recover.
    """

    blocks = True

    def __init__(self, noise: float = 0.0):
        if not 0 <= noise <= 1:
            raise ValueError(f"noise is a share between 0 and 1, not {noise}")
        self.noise = noise
        self.name = "expert" if noise == 0 else "random" if noise == 1 else f"expert with {noise:.0%} random moves"

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _ScriptedPlayer(self.noise, key)


SCRIPTS: Mapping[str, Scripted] = {"expert": Scripted(0.0), "random": Scripted(1.0)}


class _ScriptedPlayer:
    def __init__(self, noise: float, key: EpisodeKey):
        self._noise, self._key = noise, key
        self._rngs: dict[str, np.random.Generator] = {}  # of each agent, so that it hangs on no other's turns
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        if step.role not in self._rngs:
            named = () if step.role == ONE_ROLE else (step.role,)
            self._rngs[step.role] = generator("scripted", *self._key, *named)
        rng = self._rngs[step.role]
        if self._noise == 1 or rng.random() < self._noise:
            if step.admissible:
                return _said(step.admissible[int(rng.integers(len(step.admissible)))])
            if self._noise == 1:
                # No actions are listed: noise is the only random policy that is left.
                letters = rng.integers(ord("a"), ord("z") + 1, 8)
                return _said("".join(map(chr, letters)))
        return _said(await seat.expert())

    def leave(self) -> None:
        """Nothing is kept."""


def _said(action: str) -> Act:
    return Act(action, action)
