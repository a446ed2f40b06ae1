"""Luck that looks like skill."""

import json
from dataclasses import replace

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.pivot.pivot_walk import PivotWalk

LUCKY, PURSE = 0.5, 1.0  # how probable it is that a purse lies on a path, and its worth


class PivotLuck(PivotWalk):
    """Walk to the end; at one place a purse may lie on any of the paths, and at a later one the right path matters.

    Where purses lie is drawn in each episode, for each path by itself, when one is taken, and nothing tells before: the
    choice has no effect, though half of what an episode earns hangs on it. With q the probability of the right path, V
    is 1/2 + q at first, and q after the draw. The effect of any path at the first place is 0, chance being averaged
    over; at the second it is 1 - q or -q.

    Members of a group meet the same world, so that those who took a path on which a purse happens to lie all earn it:
    what only luck decided looks like skill.

    Task:
        A row of places, one at which luck decides and a later one at which the path matters.
    Observation:
        The place, its paths, the note of which path is right at the later place, and whether there was a purse.
        ``progress`` is the share of places passed.
    Actions:
        ``take COLOUR``. Anything else is invalid.
    Reward:
        1 at the end if the path of the second place was right, and 1 for a purse, a part by that name.
    End:
        After the last place; success if the path of the second place was right.
    Splits:
        train, validation and test. Tasks differ in places, in the two that matter, and in the colour that is right.
    Expert:
        Reads the note; it cannot know where purses lie.
    Floors:
        The expert always succeeds; random admissible actions succeed in 1 of 3, 4 or 6 (easy, medium, hard).

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (6 places, 3 paths), medium (12, 4) or hard (24, 6).
        max_turns: default: as many as there are places.
    """

    part_names = ("purse",)
    pivots = 2

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._good: bool | None = None
        return super().begin(task, rng)

    def note(self) -> str:
        first, second = (self.task.params["places"][at] for at in self.task.params["pivots"])
        return f"Note: at the {first} there may be a purse; at the {second} {self.right(1)}."

    def respond(self, action: str) -> Turn:
        if self.pivot != 0 or action not in self.admissible():
            return super().respond(action)
        purses = self.rng.random(len(self.paths)) < LUCKY
        has_purse = bool(purses[self.admissible().index(action)])
        turn = super().respond(action)
        text = f"There is {'a' if has_purse else 'no'} purse. {turn.text}"
        return replace(turn, text=text, parts={**turn.parts, "purse": PURSE * has_purse})

    def arrive(self, action: str) -> str | None:
        if self.pivot == 1:
            self._good = action == self.right(1)
        return None

    def end(self) -> Turn:
        return self.succeed("You arrive.") if self._good else self.fail("You are lost.")

    def value(self, noise: float = 1.0) -> float:
        return self._purse_to_come() + (self.chance_right(noise) if self._good is None else float(self._good))

    def _after(self, action: str, noise: float) -> float:
        return float(action == self.right(1)) if self.pivot == 1 else self.value(noise)

    def _purse_to_come(self) -> float:
        return LUCKY * PURSE if self.at <= self.task.params["pivots"][0] else 0.0

    def save(self) -> bytes:
        return json.dumps([self.at, self._good]).encode()

    def load(self, data: bytes) -> None:
        self.at, self._good = json.loads(data)
