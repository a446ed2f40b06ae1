"""A maze of rooms: find the key, unlock the door, take the gold. Each room shows only itself."""

import json
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.envs.classics.maze_mutation import larger_maze, smaller_maze
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import Direction, GeneratedTasks, Task, split_of

STEPS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
COLOURS = ("amber", "blue", "brown", "green", "grey", "orange", "pink", "purple", "red", "silver", "white", "yellow")


@dataclass(frozen=True)
class MazeLevel:
    """Size of the maze and how many turns it may take."""

    rooms: int
    turns: int


LEVELS = {"easy": MazeLevel(4, 12), "medium": MazeLevel(6, 20), "hard": MazeLevel(9, 36)}
_VARIANTS = 16  # that are drawn of a maze until one belongs to the training split
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000}


def draw_maze(rng: np.random.Generator, rooms: int) -> dict[str, Any]:
    """A random tree of rooms on a grid, as the params of a task.

    Room 0..rooms-1 have a colour each; ``exits[r]`` maps directions to rooms. The gold lies in a leaf behind a locked
    door, the key anywhere before it, and the agent starts before it in another room than the key.
    """
    cells = [(0, 0)]
    exits: list[dict[str, int]] = [{}]
    names = tuple(STEPS)
    while len(cells) < rooms:
        parent = int(rng.integers(len(cells)))
        way = names[int(rng.integers(4))]
        cell = (cells[parent][0] + STEPS[way][0], cells[parent][1] + STEPS[way][1])
        if cell not in cells:
            exits[parent][way] = len(cells)
            exits.append({names[(names.index(way) + 2) % 4]: parent})
            cells.append(cell)
    leaves = [r for r in range(rooms) if len(exits[r]) == 1]
    gold = leaves[int(rng.integers(len(leaves)))]
    key, start = (int(r) for r in rng.permutation([r for r in range(rooms) if r != gold])[:2])
    colours = [COLOURS[int(c)] for c in rng.permutation(len(COLOURS))[:rooms]]
    return {"exits": exits, "colours": colours, "start": start, "key": key, "gold": gold}


class Maze(TextEnv):
    """Find the key, unlock the door, take the gold.

    Task:
        A maze of rooms that form a tree on a grid. The gold lies behind a locked door, and the key in another room. In
        the manner of LMRL-Gym's mazes (Abdulhai et al. 2023, arXiv 2311.18232) and of TextWorld's treasure hunts, with
        rules of its own.
    Observation:
        The room, the exits not taken yet, those that lead back to where the agent has been, a locked door, and what
        lies there. ``progress`` is the share of three things: key taken, door unlocked, gold reached.
    Actions:
        ``go DIRECTION``, ``take key``, ``unlock DIRECTION``, ``take gold``. Anything else is invalid.
    Reward:
        1 for the gold, and nothing else.
    End:
        Success when the gold is taken. An episode cannot fail; it is truncated at ``max_turns``.
    Splits:
        train, validation and test. Mazes differ in layout, colours, start and places, and each belongs to one split.
    Expert:
        Knows only what was seen: takes the nearest new exit until it has found the key and the door.
    Floors:
        On 200 easy test mazes the expert succeeds in all and random admissible actions in 15 %
        (``benchmarks/results/quickstart.json``). ``manyturn envs manyturn/Maze-v0`` measures every level.

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (4 rooms, 12 turns), medium (6, 20) or hard (9, 36).
        max_turns: overrides the level's limit.
    """

    instructions = (
        "You are in a maze of rooms. One door is locked and the gold is behind it; the key lies in another room. "
        "Take the gold. Commands: go DIRECTION, take key, unlock DIRECTION, take gold. "
        "Directions: north, east, south, west."
    )

    levels = LEVELS
    level: MazeLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            rng = generator("maze", prefix, number)
            while True:
                params = draw_maze(rng, self.level.rooms)
                if split_of(digest(params)) == split:
                    return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        maze = task.params
        self._exits: list[dict[str, int]] = maze["exits"]
        self._colours, self._key_room, self._gold = maze["colours"], maze["key"], maze["gold"]
        self._room: int = maze["start"]
        self._has_key = self._unlocked = False
        self._visited = {self._room}
        return self._look()

    def respond(self, action: str) -> Turn:
        verb, _, noun = action.partition(" ")
        way = self._exits[self._room].get(noun)
        if verb == "go" and way is not None and not self._is_locked(way):
            self._room = way
            self._visited.add(way)
            return self.go_on(self._look())
        if verb == "unlock" and way is not None and self._is_locked(way) and self._has_key:
            self._unlocked = True
            return self.go_on(f"The door is open. {self._look()}")
        if action == "take key" and self._key_room == self._room and not self._has_key:
            self._has_key = True
            return self.go_on(f"You have the key. {self._look()}")
        if action == "take gold" and self._room == self._gold:
            return self.succeed("You have the gold.")
        return self.invalid(f"You cannot do that. {self._look()}")

    def admissible(self) -> list[str]:
        able = []
        for way, room in self._exits[self._room].items():
            if not self._is_locked(room):
                able.append(f"go {way}")
            elif self._has_key:
                able.append(f"unlock {way}")
        if self._key_room == self._room and not self._has_key:
            able.append("take key")
        if self._room == self._gold:
            able.append("take gold")
        return sorted(able)

    def vary(self, task: Task, direction: Direction, rng: np.random.Generator) -> Task | None:
        """The same maze with a room more, or a dead end less; up to twelve rooms, down to three."""
        for _ in range(_VARIANTS):
            change = larger_maze(task.params, COLOURS, rng) if direction == "harder" else smaller_maze(task.params, rng)
            if change is not None and split_of(digest(change)) == "train":
                return Task(task.id, "train", change, f"{len(change['exits'])} rooms")
        return None

    def anchor(self) -> Hashable:
        return (self.task.id, self._room, self._has_key, self._unlocked, frozenset(self._visited))

    def progress(self) -> float:
        return (self._has_key + self._unlocked + (self._room == self._gold)) / 3

    def expert(self) -> str:
        """Goes by what was seen: for the key, then to the door, and until they are found to the nearest new exit."""
        if self._room == self._gold:
            return "take gold"
        if self._room == self._key_room and not self._has_key:
            return "take key"
        for way, room in self._exits[self._room].items():
            if self._has_key and self._is_locked(room):
                return f"unlock {way}"
            if self._unlocked and room == self._gold:
                return f"go {way}"
        door = next(iter(self._exits[self._gold].values()))
        if self._has_key and door in self._visited:
            return self._step_towards({door})
        if not self._has_key and self._key_room in self._visited:
            return self._step_towards({self._key_room})
        seen = {room for visited in self._visited for room in self._exits[visited].values()}
        return self._step_towards({room for room in seen - self._visited if not self._is_locked(room)})

    def save(self) -> bytes:
        return json.dumps([self._room, self._has_key, self._unlocked, sorted(self._visited)]).encode()

    def load(self, data: bytes) -> None:
        self._room, self._has_key, self._unlocked, visited = json.loads(data)
        self._visited = set(visited)

    def _is_locked(self, room: int) -> bool:
        return room == self._gold and not self._unlocked

    def _look(self) -> str:
        ways: dict[str, list[str]] = {"New exits": [], "Known exits": [], "Locked": []}
        for way, room in self._exits[self._room].items():
            kind = "Locked" if self._is_locked(room) else "Known exits" if room in self._visited else "New exits"
            ways[kind].append(way)
        text = f"The {self._colours[self._room]} room."
        text += "".join(f" {kind}: {', '.join(names)}." for kind, names in ways.items() if names)
        if self._key_room == self._room and not self._has_key:
            text += " Here: key."
        if self._room == self._gold:
            text += " Here: gold."
        return text

    def _step_towards(self, goals: set[int]) -> str:
        """The first move on a shortest way through visited rooms to one of the goals."""
        queue: deque[tuple[int, str]] = deque([(self._room, "")])
        seen = {self._room}
        while queue:
            room, first = queue.popleft()
            if room in goals:
                return f"go {first}"
            if room in self._visited:
                for way, there in self._exits[room].items():
                    if there not in seen and not self._is_locked(there):
                        seen.add(there)
                        queue.append((there, first or way))
        raise RuntimeError("a maze whose goal cannot be reached: its tree is broken")
