"""Policies without a model: the expert, and random admissible commands."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from manyturn.agents.play.episode import Act, Player
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.env.roles import ONE_ROLE
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import Seat


@dataclass(frozen=True, slots=True)
class Mistake(Act):
    """A reply that is wrong on purpose; ``format_valid`` is False where it is to break the reply format too."""


class Scripted:
    """Expert moves, of which a share is replaced by random admissible commands.

    Args:
        noise: share of random moves: 0 is the expert, 1 a random policy. A demonstrator that errs and recovers shows a
            learner how to recover.
        invalid: share of turns at which it says something that means nothing, at random in the reply format or out of
            it; the next turn is as any other.
    """

    blocks = True

    def __init__(self, noise: float = 0.0, invalid: float = 0.0):
        for name, share in (("noise", noise), ("invalid", invalid)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} is a share between 0 and 1, not {share}")
        self.noise, self.invalid = noise, invalid
        self.name = "expert" if noise == 0 else "random" if noise == 1 else f"expert with {noise:.0%} random moves"

    def player(self, key: EpisodeKey, instructions: str) -> Player:
        return _ScriptedPlayer(self, key)


SCRIPTS: Mapping[str, Scripted] = {"expert": Scripted(0.0), "random": Scripted(1.0)}


class _ScriptedPlayer:
    def __init__(self, policy: Scripted, key: EpisodeKey):
        self._noise, self._invalid, self._key = policy.noise, policy.invalid, key
        self._rngs: dict[str, np.random.Generator] = {}  # of each agent, so that it hangs on no other's turns
        self.ledger: Ledger | None = None

    async def act(self, step: Answer, seat: Seat) -> Act:
        if step.role not in self._rngs:
            named = () if step.role == ONE_ROLE else (step.role,)
            self._rngs[step.role] = generator("scripted", *self._key, *named)
        rng = self._rngs[step.role]
        if self._invalid and rng.random() < self._invalid:
            return await self._mistake(step, seat, rng)
        if self._noise == 1 or rng.random() < self._noise:
            if step.admissible:
                return _act_of(step.admissible[int(rng.integers(len(step.admissible)))])
            if self._noise == 1:
                # No actions are listed: noise is the only random policy that is left.
                letters = rng.integers(ord("a"), ord("z") + 1, 8)
                return _act_of("".join(map(chr, letters)))
        return _act_of(await seat.expert())

    async def _mistake(self, step: Answer, seat: Seat, rng: np.random.Generator) -> Act:
        if step.admissible:
            meant = step.admissible[int(rng.integers(len(step.admissible)))]
        else:
            meant = "" if self._noise == 1 else await seat.expert()
        text = mistaken(meant, step.admissible or (), rng)
        return Mistake(text, text, format_valid=bool(rng.integers(2)))

    def leave(self) -> None:
        """Nothing is kept."""


def _act_of(action: str) -> Act:
    return Act(action, action)


def mistaken(action: str, admissible: Collection[str], rng: np.random.Generator) -> str:
    """A text that is like an action and is none of those that are admissible, as a policy writes while it learns::

        the beginning of a command      guess 689  ->  guess
        its first word again            guess 689  ->  guessguess
        something in it that is not     guess 689  ->  guess 689689

    >>> rng = np.random.default_rng(0)
    >>> sorted({mistaken("guess 689", (), rng) for _ in range(50)})
    ['guess', 'guess 689689', 'guessguess']
    """
    words = action.split() or ["?"]
    first, last = words[0], words[-1]
    begun = " ".join(words[:-1]) or first[: max(1, len(first) // 2)]
    text = [begun, first * 2, " ".join([*words[:-1], last * 2])][int(rng.integers(3))]
    while text in admissible or text == action:
        text += last
    return text
