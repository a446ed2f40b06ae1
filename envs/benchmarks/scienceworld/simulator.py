"""ScienceWorld's simulator: one episode at a time, in a Java process that is kept from episode to episode.

Source: ``ScienceWorldEnv`` of the package scienceworld 1.2.3. Its ``step`` also lists all valid actions, which takes
most of its time; here a list is made only when it is asked for.
"""

import contextlib
import json
import re
from typing import Any, NamedTuple

from manyturn.envs.benchmarks.java_process import JavaLost, JavaObject
from manyturn.envs.benchmarks.scienceworld.variations import PACKAGE, VERSION
from manyturn.envs.contract.atomic_files import cache_of, replace_text
from manyturn.envs.contract.random_keys import digest

_ENTRY = "scienceworld.runtime.pythonapi.PythonInterface"
_CHOICE = re.compile(r"^(\d+):\t", re.MULTILINE)
AMBIGUOUS = "Ambiguous request:"


class Status(NamedTuple):
    """The score of an episode.

    Attributes:
        score: share of the goal that is reached, from 0 to 1; -1 after a fatal mistake.
        completed: True if the simulator says that the task is done.
    """

    score: float
    completed: bool


class Subgoals(NamedTuple):
    """Sub-goals that have an order: how many are reached, and how many there are."""

    reached: int
    total: int


class Simulator:
    """The simulator's object in Java. Every method raises JavaLost or JavaError.

    Args:
        seconds: that a call may take.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._java: JavaObject | None = None

    def begin(self, task: str, variation: int, simplification: str) -> str:
        """Load a variation; the task and the first look around."""
        try:
            self._load(task, variation, simplification)
        except JavaLost:  # it may have ended since its last episode: no turn is lost yet
            self._load(task, variation, simplification)
        goal = self._call("getTaskDescription").strip()
        return f"{goal}\n\n{self.step('look around')}"

    def _load(self, task: str, variation: int, simplification: str, gold: bool = False) -> None:
        if self._java is None or not self._java.alive:
            self._java = JavaObject(PACKAGE, "scienceworld.jar", _ENTRY, self._seconds)
        self._java.call("load", task, variation, simplification, gold)
        self._java.call("reset")
        self._loaded, self._played = (task, variation, simplification), list[str]()

    def step(self, action: str) -> str:
        """The simulator's answer to an action, lists in the order of their lines."""
        self._played.append(action)
        return sorted_lists(self._call("step", action).strip())

    def status(self) -> Status:
        return Status(self._call("getScore"), self._call("getCompleted"))

    def subgoals(self) -> Subgoals:
        """Sub-goals in their order. Lines of the simulator's report are: number, true or false, kind, text."""
        ordered, _, _ = self._call("getGoalProgressStr").partition("Unordered and Optional Subgoals:")
        states = [line.split("\t")[1] for line in ordered.split("\n") if line[:1].isdigit() and "\t" in line]
        return Subgoals(states.count("true"), len(states))

    def surroundings(self) -> str:
        """The room and the inventory, which takes no time of the episode."""
        return sorted_lists(f"{self._call('freeActionLook').strip()}\n{self._call('freeActionInventory').strip()}")

    def valid_actions(self, text: str) -> list[str]:
        """The actions that would do something now, sorted; after an ambiguous request the numbers to choose from.

        Args:
            text: the last answer.
        """
        if text.startswith(AMBIGUOUS):
            return _CHOICE.findall(text)
        valid = json.loads(self._call("getValidActionObjectCombinationsJSON"))["validActions"]
        return sorted({action["action"] for action in valid})

    def gold_path(self) -> tuple[str, ...]:
        """The simulator's own path to the goal of this variation, kept on disk: some take it many seconds.

        To find it the simulator has to load the variation again, after which the episode's actions are replayed.
        """
        task, variation, simplification = self._loaded
        file = cache_of(PACKAGE) / VERSION / f"{task}-{variation}-{digest(simplification)[:12]}.json"
        with contextlib.suppress(OSError, ValueError):
            return tuple(map(str, json.loads(file.read_text(encoding="utf-8"))))
        played = self._played
        self._load(*self._loaded, gold=True)
        path = self._java.texts("getGoldActionSequence") if self._java else []
        self._load(*self._loaded)
        for action in played:
            self.step(action)
        with contextlib.suppress(OSError):  # a full disk costs only time
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_text(file, json.dumps(path))
        return tuple(path)

    def close(self) -> None:
        """Forget the episode; the process goes on."""
        self._java = None

    def _call(self, method: str, *arguments: str) -> Any:
        if self._java is None:
            raise JavaLost("the simulator has no episode: reset the environment")
        return self._java.call(method, *arguments)


def sorted_lists(text: str) -> str:
    """A text whose runs of lines that begin with a tab are sorted: things of a room, doors, an inventory.

    >>> sorted_lists("You see:\\n\\ta picture\\n\\tan axe\\nand\\n\\tb\\n\\ta")
    'You see:\\n\\ta picture\\n\\tan axe\\nand\\n\\ta\\n\\tb'
    """
    lines, run = [], []
    for line in text.split("\n"):
        if line.startswith("\t"):
            run.append(line)
            continue
        lines += [*sorted(run), line]
        run = []
    return "\n".join([*lines, *sorted(run)])
