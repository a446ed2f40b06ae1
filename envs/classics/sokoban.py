"""Sokoban: push every box onto a target. Levels are made by pulling boxes off their targets, so each can be solved."""

import json
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, split_of


@dataclass(frozen=True)
class SokobanLevel:
    """Size of a level.

    Args:
        side: cells of a side of the room, its outer walls left out.
        boxes: how many.
        pulls: that take the boxes off their targets when the level is made.
        turns: that an episode may take; the way that made the level is not longer.
    """

    side: int
    boxes: int
    pulls: int
    turns: int


LEVELS = {
    "easy": SokobanLevel(7, 1, 5, 14),
    "medium": SokobanLevel(6, 2, 8, 30),
    "hard": SokobanLevel(6, 2, 11, 50),
}
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}
_TARGETS, _PULLS = 40, 5  # attempts with one room, and with its targets, before others are drawn
_MOVES = ("up", "down", "left", "right")
_LEGEND = {(False, False): "-", (True, False): "$", (False, True): ".", (True, True): "*"}


class Sokoban(TextEnv):
    """Push every box onto a target.

    Task:
        A walled room with boxes and as many targets. Boxes are pushed, never pulled, one at a time.
    Observation:
        The room as rows of signs: ``#`` wall, ``-`` floor, ``.`` target, ``$`` box, ``*`` box on a target, ``@`` you,
        ``+`` you on a target. ``progress`` is the share of the boxes that are on targets.
    Actions:
        ``up``, ``down``, ``left``, ``right``. A move against a wall, or a box that cannot move, is invalid.
    Reward:
        1 when all boxes are on targets, and nothing else.
    End:
        Success when all boxes are on targets. A box in a corner can make that impossible; the episode is truncated at
        ``max_turns``.
    Splits:
        train, validation and test share no task. Walls of ``test_unseen`` occur in no other split.
    Expert:
        Sees the room, and searches for the fewest moves.
    Floors:
        ``manyturn envs manyturn/Sokoban-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (one box, 14 turns), medium (2, 30) or hard (2, farther away, 50).
        max_turns: overrides the level's limit.
    """

    instructions = (
        "You are in a room with boxes. Push every box onto a target. You can push one box at a time, and cannot pull. "
        "Signs: # wall, - floor, . target, $ box, * box on a target, @ you, + you on a target. "
        "Commands: up, down, left, right."
    )
    splits = (*SPLITS, "test_unseen")
    part_names = ()
    levels = LEVELS
    level: SokobanLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("sokoban", prefix, number)
            return Task(f"{prefix}{number}", split, draw_level(draws, self.level, split), self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._room = _room(task.params["rows"])
        self._player, self._boxes = self._room.player, self._room.boxes
        return self._look()

    def respond(self, action: str) -> Turn:
        state = self._room.moved(self._player, self._boxes, action.strip())
        if state is None:
            return self.invalid(f"You cannot move there.\n{self._look()}")
        self._player, self._boxes = state
        if self._boxes == self._room.targets:
            return self.succeed(f"{self._look()}\nEvery box is on a target.")
        return self.go_on(self._look())

    def admissible(self) -> list[str]:
        return sorted(move for move in _MOVES if self._room.moved(self._player, self._boxes, move) is not None)

    def anchor(self) -> Hashable:
        return (self.task.id, self._player, self._boxes)

    def progress(self) -> float:
        return len(self._boxes & self._room.targets) / len(self._boxes)

    def expert(self) -> str:
        """The first of the fewest moves; any move if the boxes are stuck."""
        moves = solution(self._room, self._player, self._boxes)
        return moves[0] if moves else next(iter(self.admissible()), _MOVES[0])

    def save(self) -> bytes:
        return json.dumps([self._player, sorted(self._boxes)]).encode()

    def load(self, data: bytes) -> None:
        self._player, boxes = json.loads(data)
        self._boxes = frozenset(boxes)

    def _look(self) -> str:
        return self._room.text(self._player, self._boxes)


class Room:
    """Walls and targets, which stay, and where player and boxes begin.

    A cell is numbered row by row.

    Args:
        rows: rows of signs, joined by ``|``.
    """

    def __init__(self, rows: str):
        lines = rows.split("|")
        self.width, signs = len(lines[0]), "".join(lines)
        self.floor = frozenset(cell for cell, sign in enumerate(signs) if sign != "#")
        self.targets = frozenset(cell for cell, sign in enumerate(signs) if sign in ".*+")
        self.boxes = frozenset(cell for cell, sign in enumerate(signs) if sign in "$*")
        self.player = next((cell for cell, sign in enumerate(signs) if sign in "@+"), -1)
        self.steps: dict[str, int] = dict(zip(_MOVES, (-self.width, self.width, -1, 1), strict=True))
        self.live = _pulled(self.targets, self.floor, self.steps.values())
        """Cells from which a box can still come to a target, were it the only one."""

    def moved(self, player: int, boxes: frozenset[int], move: str) -> tuple[int, frozenset[int]] | None:
        """Player and boxes after a move; None if it is not possible."""
        step = self.steps.get(move)
        if step is None or (to := player + step) not in self.floor:
            return None
        if to not in boxes:
            return to, boxes
        beyond = to + step
        if beyond not in self.floor or beyond in boxes:
            return None
        return to, boxes - {to} | {beyond}

    def text(self, player: int, boxes: frozenset[int]) -> str:
        """The room as rows of signs."""
        rows = []
        for start in range(0, self.width * self.width, self.width):
            rows.append("".join([self._sign(cell, player, boxes) for cell in range(start, start + self.width)]))
        return "\n".join(rows)

    def _sign(self, cell: int, player: int, boxes: frozenset[int]) -> str:
        if cell == player:
            return "+" if cell in self.targets else "@"
        return _LEGEND[cell in boxes, cell in self.targets] if cell in self.floor else "#"


_room = lru_cache(maxsize=256)(Room)


@lru_cache(maxsize=2048)
def solution(room: Room, player: int, boxes: frozenset[int]) -> tuple[str, ...]:
    """The fewest moves that bring all boxes onto targets; empty if there are none."""
    start = (player, boxes)
    came: dict[tuple[int, frozenset[int]], tuple[Any, str]] = {start: (None, "")}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        if state[1] == room.targets:
            moves = []
            while came[state][0] is not None:
                state, move = came[state]
                moves.append(move)
            return tuple(reversed(moves))
        for move in _MOVES:
            after = room.moved(*state, move)
            if after is not None and after not in came and after[1] <= room.live:
                came[after] = (state, move)
                queue.append(after)
    return ()


def _pulled(targets: Iterable[int], floor: frozenset[int], steps: Iterable[int]) -> frozenset[int]:
    """Cells that a single box can be pulled to from the targets."""
    steps, cells = tuple(steps), list(targets)
    reached = set(cells)
    while cells:
        cell = cells.pop()
        for step in steps:
            if cell + step in floor and cell + 2 * step in floor and cell + step not in reached:
                reached.add(cell + step)
                cells.append(cell + step)
    return frozenset(reached)


# ---- levels -------------------------------------------------------------------------------------------------


def draw_level(draws: Draws, level: SokobanLevel, split: str) -> dict[str, Any]:
    """The parameters of a task: a room in which every box has been pulled off its target.

    Walls and targets decide to which split it belongs.
    """
    while True:
        room = _draw_room(draws, level, split == "test_unseen")
        free = sorted(room.floor)
        for _ in range(_TARGETS):
            room.targets = frozenset(draws.pick(free) for _ in range(level.boxes))
            key = digest(free, sorted(room.targets))
            if len(room.targets) < level.boxes or (split in SPLITS and split_of(key) != split):
                continue
            for _ in range(_PULLS):
                if (state := _pull(draws, room, level)) is not None:
                    return {"rows": room.text(*state).replace("\n", "|")}


def _pull(draws: Draws, room: Room, level: SokobanLevel) -> tuple[int, frozenset[int]] | None:
    """Player and boxes after random pulls, which never bring back boxes to where they were; None if there are too few.

    The way back solves the level.
    """
    boxes, moves = room.targets, 0
    player = draws.pick(sorted(room.floor - boxes))
    met = {boxes}
    for _ in range(level.pulls):
        distances = _distances(room, player, boxes)
        pulls = [
            (box, box + step)
            for box in sorted(boxes)
            for step in room.steps.values()
            if box + step in distances and box + 2 * step in room.floor and box + 2 * step not in boxes
        ]
        pulls = [(box, to) for box, to in pulls if boxes - {box} | {to} not in met]
        if not pulls:
            return None
        box, to = draws.pick(pulls)
        moves += distances[to] + 1
        boxes, player = boxes - {box} | {to}, 2 * to - box
        met.add(boxes)
    return None if boxes & room.targets or moves > level.turns else (player, boxes)


def _draw_room(draws: Draws, level: SokobanLevel, unseen: bool) -> Room:
    """A room in which all floor is connected, with walls kept for ``test_unseen`` or not."""
    side = level.side
    while True:
        inner = ["".join(["#" if draws.below(4) == 0 else "-" for _ in range(side)]) for _ in range(side)]
        room = Room("|".join(["#" * (side + 2), *(f"#{row}#" for row in inner), "#" * (side + 2)]))
        connected = _distances(room, draws.pick(sorted(room.floor)), frozenset()) if room.floor else {}
        if len(connected) < side * side * 2 // 3:
            continue
        room.floor = frozenset(connected)  # what cannot be reached becomes wall
        if is_held_out("sokoban", room.text(-1, frozenset())) == unseen:
            return room


def _distances(room: Room, start: int, boxes: frozenset[int]) -> dict[int, int]:
    """Moves from a cell to each that the player can reach without pushing."""
    distances, queue = {start: 0}, deque([start])
    while queue:
        cell = queue.popleft()
        for step in room.steps.values():
            to = cell + step
            if to in room.floor and to not in boxes and to not in distances:
                distances[to] = distances[cell] + 1
                queue.append(to)
    return distances
