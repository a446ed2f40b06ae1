"""One turn decides."""

import json

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.pivot.pivot_walk import PivotWalk


class PivotOne(PivotWalk):
    """Walk to the end; at one place of all the path matters.

    With q the probability of the right path, V is q before the place and 1 or 0 after it. The effect of the right path
    is 1 - q, that of a wrong one is -q, and that of every other turn is 0.

    Task:
        A row of places, and the one at which the path matters.
    Observation:
        The place, its paths, and the note of which path is right where. ``progress`` is the share of places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 at the end if the right path was taken, and nothing else.
    End:
        After the last place, in success or failure.
    Splits:
        train, validation and test. Tasks differ in places, in the one that matters, and in its colour.
    Expert:
        Reads the note.
    Floors:
        The expert always succeeds; random admissible actions succeed in 1 of 3, 4 or 6 (easy, medium, hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (6 places, 3 paths), medium (12, 4) or hard (24, 6).
        max_turns: default: as many as there are places.
    """

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._good: bool | None = None
        return super().begin(task, rng)

    def arrive(self, action: str) -> str | None:
        if self.pivot is not None:
            self._good = action == self.right(self.pivot)
        return None

    def end(self) -> Turn:
        return self.succeed("You arrive.") if self._good else self.fail("You are lost.")

    def value(self, noise: float = 1.0) -> float:
        return self.chance_right(noise) if self._good is None else float(self._good)

    def _after(self, action: str, noise: float) -> float:
        return self.value(noise) if self.pivot is None else float(action == self.right(self.pivot))

    def save(self) -> bytes:
        return json.dumps([self.at, self._good]).encode()

    def load(self, data: bytes) -> None:
        self.at, self._good = json.loads(data)
