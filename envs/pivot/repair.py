"""An early mistake that a later turn repairs."""

import json

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.pivot.pivot_walk import PivotWalk


class PivotRepair(PivotWalk):
    """Walk to the end; a wrong path at the first place that matters breaks the wheel, and the second can repair it.

    With q the probability of a right path, V is q + (1 - q) q at first. The first right path has the effect
    (1 - q)^2, a wrong one -(1 - q) q. At the second place the effect is 1 - q or -q while the wheel is broken, and 0
    while it is sound, whatever is taken.

    Task:
        A row of places, one at which a wheel may break and a later one at which it can be repaired.
    Observation:
        The place, its paths, the note of which path is right where, and whether the wheel breaks or is repaired.
        ``progress`` is the share of places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 at the end if the wheel is sound, and nothing else.
    End:
        After the last place, in success or failure.
    Splits:
        train, validation and test. Tasks differ in places, in the two that matter, and in their colours.
    Expert:
        Reads the note.
    Floors:
        The expert always succeeds; random admissible actions succeed in 5 of 9, 7 of 16 or 11 of 36 (easy, medium,
        hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (6 places, 3 paths), medium (12, 4) or hard (24, 6).
        max_turns: default: as many as there are places.
    """

    pivots = 2

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._broken = False
        return super().begin(task, rng)

    def arrive(self, action: str) -> str | None:
        if self.pivot is None:
            return None
        before, right = self._broken, action == self.right(self.pivot)
        self._broken = self._broken_after(right)
        if before == self._broken:
            return None
        return "The wheel breaks." if self._broken else "The wheel is repaired."

    def _broken_after(self, right: bool) -> bool:
        return not right if self.pivot == 0 else self._broken and not right

    def end(self) -> Turn:
        return self.fail("The wheel is broken.") if self._broken else self.succeed("You arrive.")

    def value(self, noise: float = 1.0) -> float:
        first, second = self.task.params["pivots"]
        q = self.chance_right(noise)
        if self.at <= first:
            return q + (1 - q) * q
        return self._worth(self._broken, self.at <= second, q)

    def _after(self, action: str, noise: float) -> float:
        if self.pivot is None:
            return self.value(noise)
        broken = self._broken_after(action == self.right(self.pivot))
        return self._worth(broken, self.pivot == 0, self.chance_right(noise))

    @staticmethod
    def _worth(broken: bool, repairable: bool, q: float) -> float:
        return 1.0 if not broken else q if repairable else 0.0

    def save(self) -> bytes:
        return json.dumps([self.at, self._broken]).encode()

    def load(self, data: bytes) -> None:
        self.at, self._broken = json.loads(data)
