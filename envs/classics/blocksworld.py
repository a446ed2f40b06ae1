"""Blocksworld: rebuild towers of coloured blocks, one block at a time."""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, params_of_split

COLOURS = (
    *("amber", "beige", "black", "blue", "brown", "cream", "crimson", "gold", "green", "grey", "indigo", "lilac"),
    *("olive", "orange", "pink", "purple", "red", "silver", "turquoise", "violet", "white", "yellow"),
)


@dataclass(frozen=True)
class BlocksLevel:
    """Number of blocks, and turns that an episode may take: four for each block."""

    blocks: int
    turns: int


LEVELS = {"easy": BlocksLevel(5, 20), "medium": BlocksLevel(8, 32), "hard": BlocksLevel(12, 48)}
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}
_TABLE = "table"


class Blocksworld(TextEnv):
    """Rebuild towers of coloured blocks.

    Task:
        Blocks stand in towers on a table and shall stand in others, all of which the first text names. One block can be
        held at a time.
    Observation:
        Every tower from bottom to top, and what the hand holds. ``progress`` is the share of the blocks that stand on
        what the goal says, down to the table.
    Actions:
        ``pick up BLOCK`` from the table, ``unstack BLOCK from BLOCK``, ``put down BLOCK`` onto the table, and ``stack
        BLOCK on BLOCK``: STRIPS's four operators. Anything else is invalid.
    Reward:
        1 when the towers are those of the goal, and nothing else.
    End:
        Success when the towers are those of the goal. An episode cannot fail; it is truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. Pairs of heights of the towers at the start and of the goal in
        ``test_unseen`` occur in no other split.
    Expert:
        Moves a block to where it belongs as soon as that is free, and otherwise the nearest one that is in the way onto
        the table. No block moves more than twice; that is not always the fewest moves.
    Floors:
        ``manyturn envs manyturn/Blocksworld-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (5 blocks, 20 turns), medium (8, 32) or hard (12, 48).
        max_turns: overrides the level's limit.
    """

    instructions = (
        "You move blocks with one hand and must build the towers that are asked for. You can take only a block that "
        "has nothing on it, and hold one block at a time. Commands: pick up BLOCK, put down BLOCK, "
        "stack BLOCK on BLOCK, unstack BLOCK from BLOCK. Pick up and put down are for the table. "
        "A block is named by its colour. Towers are listed from bottom to top."
    )
    splits = (*SPLITS, "test_unseen")
    part_names = ()
    levels = LEVELS
    level: BlocksLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("blocksworld", prefix, number)
            params = params_of_split(lambda: draw_blocks(draws, self.level.blocks, split == "test_unseen"), split)
            return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._below = _below(task.params["start"])
        self._goal = _below(task.params["goal"])
        self._hand = ""
        return f"{self._look()} Goal: {_towers(self._goal)}"

    def respond(self, action: str) -> Turn:
        operation = self._operations().get(action.strip())
        if operation is None:
            return self.invalid(f"You cannot do that. {self._look()}")
        block, below = operation
        self._below, self._hand = dict(self._below), "" if below else block
        if below:
            self._below[block] = below
        else:
            del self._below[block]
        if self._below == self._goal:
            return self.succeed(f"{self._look()} The towers are built.")
        return self.go_on(self._look())

    def admissible(self) -> list[str]:
        return sorted(self._operations())

    def anchor(self) -> Hashable:
        return (self.task.id, self._hand, tuple(sorted(self._below.items())))

    def progress(self) -> float:
        return sum(self._stands(block) for block in self._below) / len(self._goal)

    def expert(self) -> str:
        below, goal = self._below, self._goal
        free = self._free()
        if block := self._hand:
            place = goal[block]
            if place != _TABLE and place in free and self._stands(place):
                return f"stack {block} on {place}"
            return f"put down {block}"
        for block in sorted(free):
            place = goal[block]
            if not self._stands(block) and place != _TABLE and place in free and self._stands(place):
                return _taking(block, below[block])
        block = next(block for block in sorted(free) if not self._stands(block) and below[block] != _TABLE)
        return _taking(block, below[block])

    def save(self) -> bytes:
        return json.dumps([self._below, self._hand]).encode()

    def load(self, data: bytes) -> None:
        self._below, self._hand = json.loads(data)

    def _free(self) -> set[str]:
        """Blocks that have nothing on them and are not held."""
        return set(self._below) - set(self._below.values())

    def _operations(self) -> dict[str, tuple[str, str]]:
        """Commands that exist now: command -> block, and the place it comes to; the hand is ""."""
        free = self._free()
        if self._hand:
            stacking = {f"stack {self._hand} on {block}": (self._hand, block) for block in free}
            return {**stacking, f"put down {self._hand}": (self._hand, _TABLE)}
        return {_taking(block, self._below[block]): (block, "") for block in free}

    def _stands(self, block: str) -> bool:
        """True if a block and all below it stand where the goal says."""
        while block != _TABLE:
            if self._below.get(block) != self._goal[block]:
                return False
            block = self._goal[block]
        return True

    def _look(self) -> str:
        hand = f"the {self._hand} block" if self._hand else "nothing"
        return f"{_towers(self._below)} You hold {hand}."


def _taking(block: str, below: str) -> str:
    return f"pick up {block}" if below == _TABLE else f"unstack {block} from {below}"


def _towers(below: dict[str, str]) -> str:
    """Towers in words, from bottom to top."""
    on = {place: block for block, place in below.items() if place != _TABLE}
    towers = []
    for block in sorted(block for block, place in below.items() if place == _TABLE):
        tower = [block]
        while tower[-1] in on:
            tower.append(on[tower[-1]])
        towers.append(" ".join(tower))
    return f"Towers: {'; '.join(towers)}."


@lru_cache(maxsize=512)
def _below(towers: str) -> dict[str, str]:
    """For each block what it stands on. Callers do not change it."""
    return {block: low for tower in towers.split("|") for low, block in _pairs(tower)}


def _pairs(tower: str) -> list[tuple[str, str]]:
    blocks = tower.split()
    return list(zip([_TABLE, *blocks], blocks, strict=False))


def draw_blocks(draws: Draws, size: int, unseen: bool) -> dict[str, Any]:
    """The parameters of a task: ``start`` and ``goal``, towers from bottom to top, joined by ``|``."""
    while True:
        pool = list(COLOURS)
        names = [pool.pop(draws.below(len(pool))) for _ in range(size)]
        start, goal = _draw_towers(draws, names), _draw_towers(draws, names)
        heights = [sorted(tower.count(" ") + 1 for tower in towers) for towers in (start, goal)]
        if start != goal and is_held_out("blocksworld", heights) == unseen:
            return {"start": "|".join(start), "goal": "|".join(goal)}


def _draw_towers(draws: Draws, names: Sequence[str]) -> list[str]:
    """Towers of all the blocks, sorted."""
    pool, towers = list(names), list[list[str]]()
    while pool:
        block = pool.pop(draws.below(len(pool)))
        place = draws.below(len(towers) + 2)  # one more than there are towers would make few and high ones
        if place < len(towers):
            towers[place].append(block)
        else:
            towers.append([block])
    return sorted(" ".join(tower) for tower in towers)
