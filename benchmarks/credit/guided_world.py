"""A world that nothing in a prompt tells how to solve, so that no reward comes until it is solved: guidance can.

Each of sixteen places has a right path, of eight colours, the same in every task; no text says which. A task is a walk
past six of them, and only a walk without a mistake succeeds: one in 8^6 at random. In the *told* form places and paths
are drawn for each task, and the first observation says what to do, in the words of a hint or of a critique. A policy
that has learnt to do as it is told there knows nothing of the right paths.
"""

import json
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task, split_of
from manyturn.trainers.play.guidance import critique, hints
from manyturn.trainers.play.guidance.guided_play import with_guidance

COLOURS = ("red", "blue", "green", "white", "black", "brown", "pink", "grey")
PLACES = (
    "Mill", "Ford", "Hill", "Farm", "Well", "Gate", "Moor", "Wood",
    "Lake", "Barn", "Inn", "Quarry", "Bridge", "Tower", "Chapel", "Forge",
)  # fmt: skip
TURNS = 6
_TASKS = 6000


class Untold(TextEnv):
    """Walk past six places; the path matters at each, and is told by nothing.

    Args:
        told: say in the first observation what to do, for paths that are drawn for the task.
    """

    instructions = "Take the right path at each place. Command: take COLOUR."
    part_names = ()
    max_turns = TURNS

    def __init__(self, split: str = "train", told: bool = False):
        super().__init__(split)
        self.told = told

    def tasks(self, split: str) -> Sequence[Task]:
        return _by_split(self.told)[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.at, self.right = 0, True
        text = self._asking()
        return with_guidance(text, task.params["words"]) if self.told else text

    def _asking(self) -> str:
        return f"{self.task.params['walk'][self.at]}?"

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(self._asking())
        self.right = self.right and action == self.expert()
        self.at += 1
        if self.at < TURNS:
            return self.go_on(self._asking())
        return self.succeed("You arrive.") if self.right else self.fail("You are lost.")

    def admissible(self) -> list[str]:
        return [_take(colour) for colour in COLOURS]

    def anchor(self) -> Hashable:
        return (self.task.id, self.at)

    def progress(self) -> float:
        return self.at / TURNS

    def expert(self) -> str:
        return _take(self.task.params["colours"][self.at])

    def save(self) -> bytes:
        return json.dumps([self.at, self.right]).encode()

    def load(self, data: bytes) -> None:
        self.at, self.right = json.loads(data)


def _take(colour: str) -> str:
    return f"take {colour}"


@cache
def _by_split(told: bool) -> dict[str, list[Task]]:
    shares: dict[str, list[Task]] = {"train": [], "validation": [], "test": []}
    for number in range(_TASKS):
        params = _told(number) if told else _walk(number)
        split = split_of(Task("", "", params).content)
        shares[split].append(Task(f"{split}/{number}", split, params))
    return shares


def _walk(number: int) -> dict[str, Any]:
    """A walk whose right paths are those of its places."""
    places = generator("walk", number).choice(len(PLACES), TURNS, replace=False)
    colour_of = generator("right paths").integers(len(COLOURS), size=len(PLACES))
    return {"walk": [PLACES[n] for n in places], "colours": [COLOURS[colour_of[n]] for n in places]}


def _told(number: int) -> dict[str, Any]:
    """A walk with paths of its own, and the words that tell them: a hint, or a critique of random ones."""
    rng = generator("told walk", number)
    places, colours = rng.choice(len(PLACES), TURNS, replace=False), rng.integers(len(COLOURS), size=TURNS)
    right = [_take(COLOURS[n]) for n in colours]
    if number % 2:
        words = hints.spoken(right)
    else:
        wrong = [
            _take(COLOURS[(n + k) % len(COLOURS)]) for n, k in zip(colours, rng.integers(1, 8, TURNS), strict=True)
        ]
        words = critique.spoken(list(zip(range(1, TURNS + 1), wrong, right, strict=True)))
    return {"walk": [PLACES[n] for n in places], "colours": [COLOURS[n] for n in colours], "words": words}
