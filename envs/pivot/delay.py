"""A turn that only costs time."""

import json
from math import comb

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.pivot.pivot_walk import PivotWalk


class PivotDelay(PivotWalk):
    """Walk to the end in time; one path of each place leads on, all others lead back to where one was.

    A turn can spoil nothing but the time. With q the probability of the path that leads on, m places to go and t turns
    left, V(m, t) is the probability of at least m heads in t throws of a coin with q. Walking on has the effect
    V(m - 1, t - 1) - V(m, t), a detour V(m, t - 1) - V(m, t). The anchor is the place, which says nothing of the time.

    Task:
        A row of places, of which a third has to be passed in as many turns as there are places.
    Observation:
        The place, its paths, and the note of which colour leads on; nothing of the time. ``progress`` is the share of
        places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 on arrival, and nothing else.
    End:
        Success on arrival. An episode cannot fail; it is truncated when its turns are over.
    Splits:
        train, validation and test. Tasks differ in places and in the colour that leads on.
    Expert:
        Reads the note.
    Floors:
        The expert always succeeds; random admissible actions succeed in 65 %, 35 % and 4 % (easy, medium, hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (2 places in 6 turns, 3 paths), medium (4 in 12, 4) or hard (8 in 24, 6).
        max_turns: default: three times the places that have to be passed.
    """

    instructions = "Walk to the end before the time is over. One colour leads on. Command: take COLOUR."

    @property
    def goal(self) -> int:
        """Places that have to be passed."""
        return self.level.places // 3

    def note(self) -> str:
        return f"Note: {self.task.params['right'][0]} leads on."

    def arrive(self, action: str) -> str | None:
        raise NotImplementedError("a detour stays where it was, see respond()")

    def end(self) -> Turn:
        return self.succeed("You arrive.")

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"There is no such path. {self._view()}")
        if action != self.right(0):
            return self.go_on(f"You are back. {self._view()}")
        self.at += 1
        return self.end() if self.at == self.goal else self.go_on(self._view())

    def progress(self) -> float:
        return self.at / self.goal

    def expert(self) -> str:
        return self.right(0)

    def value(self, noise: float = 1.0) -> float:
        return self._worth(self.goal - self.at, self.max_turns - self.turn, self.chance_right(noise))

    def _after(self, action: str, noise: float) -> float:
        places = self.goal - self.at - (action == self.right(0))
        return self._worth(places, self.max_turns - self.turn - 1, self.chance_right(noise))

    @staticmethod
    def _worth(places: int, turns: int, q: float) -> float:
        """Probability of at least so many heads in so many throws."""
        return sum(comb(turns, n) * q**n * (1 - q) ** (turns - n) for n in range(places, turns + 1))

    def save(self) -> bytes:
        return json.dumps(self.at).encode()

    def load(self, data: bytes) -> None:
        self.at = json.loads(data)
