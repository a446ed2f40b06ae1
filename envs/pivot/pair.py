"""Two turns decide together."""

import json

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.pivot.pivot_walk import PivotWalk


class PivotPair(PivotWalk):
    """Walk to the end; at two places the path matters, and only both right ones together lead anywhere.

    With q the probability of a right path, V is q^2 at first. The effect of the first right path is q - q^2, that of a
    wrong one is -q^2; at the second place it is 1 - q or -q if the first path was right, and else 0, whatever is taken.

    Task:
        A row of places, and the two at which the path matters.
    Observation:
        The place, its paths, and the note of which path is right where. ``progress`` is the share of places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 at the end if both paths were right, and nothing else.
    End:
        After the last place, in success or failure.
    Splits:
        train, validation and test. Tasks differ in places, in the two that matter, and in their colours.
    Expert:
        Reads the note.
    Floors:
        The expert always succeeds; random admissible actions succeed in 1 of 9, 16 or 36 (easy, medium, hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (6 places, 3 paths), medium (12, 4) or hard (24, 6).
        max_turns: default: as many as there are places.
    """

    pivots = 2

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._right: list[bool] = []
        return super().begin(task, rng)

    def arrive(self, action: str) -> str | None:
        if self.pivot is not None:
            self._right.append(action == self.right(self.pivot))
        return None

    def end(self) -> Turn:
        return self.succeed("You arrive.") if all(self._right) else self.fail("You are lost.")

    def value(self, noise: float = 1.0) -> float:
        return self._worth(self._right, noise)

    def _after(self, action: str, noise: float) -> float:
        if self.pivot is None:
            return self.value(noise)
        return self._worth([*self._right, action == self.right(self.pivot)], noise)

    def _worth(self, right: list[bool], noise: float) -> float:
        return self.chance_right(noise) ** (self.pivots - len(right)) if all(right) else 0.0

    def save(self) -> bytes:
        return json.dumps([self.at, self._right]).encode()

    def load(self, data: bytes) -> None:
        self.at, self._right = json.loads(data)
