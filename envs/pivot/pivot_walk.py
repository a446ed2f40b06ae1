"""A walk past places, at each of which a path of some colour is taken; worlds differ in which choices matter.

Every world gives the value of its states in closed form, for the expert of whose moves a share is random. The true
effect of a turn, Q(s, a) - V(s), follows from it, so that estimates of it, and credit, can be checked by it.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of

COLOURS = ("red", "blue", "green", "white", "black", "brown")
PLACES = (
    "Mill", "Ford", "Hill", "Farm", "Well", "Gate", "Moor", "Wood", "Lake", "Barn", "Inn", "Quarry",
    "Bridge", "Tower", "Chapel", "Orchard", "Meadow", "Harbour", "Market", "Forge", "Spring", "Cave", "Ridge", "Dyke",
)  # fmt: skip
_TASKS = {"train": 100_000, "validation": 10_000, "test": 10_000}


@dataclass(frozen=True)
class WalkLevel:
    """Number of places, and of paths at each."""

    places: int
    paths: int


LEVELS = {"easy": WalkLevel(6, 3), "medium": WalkLevel(12, 4), "hard": WalkLevel(24, 6)}


class PivotWalk(TextEnv):
    """Base of the walks: places in a row, a path of some colour at each, and a note of which ones matter.

    A subclass says how many places matter, what happens there, and what the states are worth.

    Attributes:
        pivots: how many places matter.
        at: number of the place, 0 to ``level.places`` - 1.
    """

    instructions = "Walk to the end. At each place take a path; the note says where it matters. Command: take COLOUR."
    part_names = ()
    levels = LEVELS
    level: WalkLevel
    pivots: ClassVar[int] = 1

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, self.level_of(difficulty).places if max_turns is None else max_turns, difficulty)

    # ---- what a world says -----------------------------------------------------------------------------------

    @abstractmethod
    def arrive(self, action: str) -> str | None:
        """Take a path at the present place; the text of what happens, None where nothing does."""

    @abstractmethod
    def end(self) -> Turn:
        """The last turn, after the last place."""

    @abstractmethod
    def value(self, noise: float = 1.0) -> float:
        """V of the present state in closed form, under the expert of whose moves a share ``noise`` is random."""

    def effect(self, action: str, noise: float = 1.0) -> float:
        """Q(s, a) - V(s) of an admissible action in closed form; chance inside the environment is averaged over.

        Args:
            noise: share of random moves of the expert that is followed; 1 is the random policy.
        """
        return self._after(action, noise) - self.value(noise)

    @abstractmethod
    def _after(self, action: str, noise: float) -> float:
        """Q of the present state and an admissible action."""

    # ---- what all have ---------------------------------------------------------------------------------------

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            rng = generator("pivot", type(self).__name__, prefix, number)
            while True:
                params = self._draw(rng)
                if split_of(digest(params)) == split:
                    return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def _draw(self, rng: np.random.Generator) -> dict[str, Any]:
        places, paths = self.level.places, self.level.paths
        return {
            "places": [PLACES[int(place)] for place in rng.permutation(len(PLACES))[:places]],
            "pivots": sorted(int(place) for place in rng.permutation(places)[: self.pivots]),
            "right": [COLOURS[int(colour)] for colour in rng.integers(paths, size=self.pivots)],
        }

    @property
    def paths(self) -> tuple[str, ...]:
        """Colours of the paths at each place."""
        return COLOURS[: self.level.paths]

    @property
    def pivot(self) -> int | None:
        """The number of the pivot that the present place is; None at a place without consequence."""
        pivots = self.task.params["pivots"]
        return pivots.index(self.at) if self.at in pivots else None

    def right(self, pivot: int) -> str:
        """The action that is right at a pivot."""
        return f"take {self.task.params['right'][pivot]}"

    def chance_right(self, noise: float) -> float:
        """Probability of the right action at a pivot."""
        return 1 - noise + noise / len(self.paths)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.at = 0
        return self._view()

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"There is no such path. {self._view()}")
        event = self.arrive(action)
        self.at += 1
        if self.at == self.level.places:
            return self.end()
        return self.go_on(f"{event} {self._view()}" if event else self._view())

    def admissible(self) -> list[str]:
        return [f"take {colour}" for colour in self.paths]

    def anchor(self) -> Hashable:
        return (self.task.id, self.at)

    def progress(self) -> float:
        return self.at / self.level.places

    def expert(self) -> str:
        return self.admissible()[0] if self.pivot is None else self.right(self.pivot)

    def note(self) -> str:
        """Note that the agent reads of the places that matter."""
        places = self.task.params["places"]
        hints = [f"at the {places[at]} {self.right(pivot)}" for pivot, at in enumerate(self.task.params["pivots"])]
        return f"Note: {', '.join(hints)}."

    def _view(self) -> str:
        here = self.task.params["places"][self.at] if self.at < self.level.places else "end"
        return f"{self.note()} You are at the {here}. Paths: {', '.join(self.paths)}."
