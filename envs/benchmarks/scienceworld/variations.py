"""ScienceWorld's tasks: their names, how many variations each has, the official splits, and published turn limits.

Source: the package scienceworld 1.2.3, whose simulator names the same numbers and splits; a test compares them. Limits:
the agents of ETO (Song et al. 2024, arXiv 2403.02502), ``max_steps.json`` in github.com/Yifan-Song793/ETO at 9cd8087,
which plays 24 of the 30 tasks.
"""

from collections.abc import Sequence
from typing import NamedTuple

from manyturn.envs.contract.tasks.task import LazyTasks, Task

PACKAGE, VERSION = "scienceworld", "1.2.3"


class Kind(NamedTuple):
    """A task of ScienceWorld.

    Attributes:
        variations: their number.
        limit: turns that ETO allows; None where it does not play the task.
        electrical: True if it cannot be done without connecting things.
    """

    variations: int
    limit: int | None = None
    electrical: bool = False


KINDS = {
    "boil": Kind(30, 100),
    "change-the-state-of-matter-of": Kind(30, 80),
    "chemistry-mix": Kind(32, 60),
    "chemistry-mix-paint-secondary-color": Kind(36, 15),
    "chemistry-mix-paint-tertiary-color": Kind(36, 30),
    "find-animal": Kind(300, 15),
    "find-living-thing": Kind(300, 15),
    "find-non-living-thing": Kind(300, 15),
    "find-plant": Kind(300, 15),
    "freeze": Kind(30, 80),
    "grow-fruit": Kind(126, 60),
    "grow-plant": Kind(126, 30),
    "identify-life-stages-1": Kind(14, 30),
    "identify-life-stages-2": Kind(10, 30),
    "inclined-plane-determine-angle": Kind(168),
    "inclined-plane-friction-named-surfaces": Kind(1386),
    "inclined-plane-friction-unnamed-surfaces": Kind(162),
    "lifespan-longest-lived": Kind(125, 10),
    "lifespan-longest-lived-then-shortest-lived": Kind(125, 12),
    "lifespan-shortest-lived": Kind(125, 10),
    "measure-melting-point-known-substance": Kind(436, 120),
    "measure-melting-point-unknown-substance": Kind(300),
    "melt": Kind(30, 80),
    "mendelian-genetics-known-plant": Kind(120),
    "mendelian-genetics-unknown-plant": Kind(480),
    "power-component": Kind(20, 20, electrical=True),
    "power-component-renewable-vs-nonrenewable-energy": Kind(20, 30, electrical=True),
    "test-conductivity": Kind(900, 30, electrical=True),
    "test-conductivity-of-unknown-substances": Kind(600, 30, electrical=True),
    "use-thermometer": Kind(540, 30),
}
PLAYED_BY_ETO = tuple(name for name, kind in KINDS.items() if kind.limit is not None)


def split_range(name: str, split: str) -> range:
    """Numbers of the variations of a task that a split has: the first half, a quarter, and the rest.

    >>> [split_range("boil", split) for split in ("train", "validation", "test")]
    [range(0, 14), range(14, 21), range(21, 30)]
    """
    count = KINDS[name].variations
    quarter = count // 4
    ends = {"train": (0, 2 * quarter), "validation": (2 * quarter, 3 * quarter), "test": (3 * quarter, count)}
    return range(*ends[split])


class Variations(LazyTasks):
    """The tasks of a split: the first variation of each name, then the second of each, and so on.

    Args:
        split: train, validation or test.
        names: of ScienceWorld's tasks.
        simplification: as the simulator takes it.
    """

    def __init__(self, split: str, names: Sequence[str], simplification: str):
        self._split, self._simplification = split, simplification
        self._ranges = {name: split_range(name, split) for name in names}
        longest = max(map(len, self._ranges.values()))
        self._order = [
            (name, numbers[rank])
            for rank in range(longest)
            for name, numbers in self._ranges.items()
            if rank < len(numbers)
        ]

    def __len__(self) -> int:
        return len(self._order)

    def task_at(self, place: int) -> Task:
        return self._make(*self._order[place])

    def find(self, task_id: str) -> Task | None:
        """The task with this id, such as ``test/boil/21``, or None."""
        split, _, rest = task_id.partition("/")
        name, _, number = rest.rpartition("/")
        if split != self._split or not number.isdecimal() or str(int(number)) != number:
            return None
        return self._make(name, int(number)) if int(number) in self._ranges.get(name, ()) else None

    def _make(self, name: str, number: int) -> Task:
        params = {"task": name, "variation": number, "simplification": self._simplification, "version": VERSION}
        return Task(f"{self._split}/{name}/{number}", self._split, params, tags=(name,))
