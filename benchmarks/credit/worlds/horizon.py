"""A walk of any length with one bit of reward at its end, for measuring credit over horizons."""

import json
from collections.abc import Hashable, Sequence

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task

COLOURS = ("red", "blue", "green", "white", "black", "brown", "pink", "grey")
DECISIVE = 2  # turns of an episode that matter, however long it is


class Horizon(TextEnv):
    """Pass a row of places, at each by a path of some colour; two turns decide, and only the end tells.

    Isolates the length of an episode: the turns that decide stay two, and all others do nothing. The anchor is the
    place, which forgets an early mistake.

    Args:
        split: split that ``reset`` draws from.
        places: turns of an episode, at least 2.
    """

    instructions = "Walk to the end. The note says where the way matters. Command: take COLOUR."
    part_names = ()

    def __init__(self, split: str = "train", places: int = 8):
        super().__init__(split, places)
        self.places = places

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.places}/"

        def make(number: int) -> Task:
            rng = generator("horizon", prefix, number)
            decisive = sorted(rng.permutation(self.places)[:DECISIVE].tolist())
            colours = [COLOURS[int(colour)] for colour in rng.integers(len(COLOURS), size=DECISIVE)]
            return Task(f"{prefix}{number}", split, {"decisive": decisive, "colours": colours})

        return GeneratedTasks(make, 10_000, prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.at, self.right = 0, True
        pairs = zip(task.params["decisive"], task.params["colours"], strict=True)
        return " ".join(f"Place {place}: {colour}." for place, colour in pairs) + " Place 0?"

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"Place {self.at}?")
        self.right = self.right and (self.at not in self.task.params["decisive"] or action == self.expert())
        self.at += 1
        if self.at < self.places:
            return self.go_on(f"Place {self.at}?")
        return self.succeed("You arrive.") if self.right else self.fail("You are lost.")

    def admissible(self) -> list[str]:
        return [f"take {colour}" for colour in COLOURS]

    def anchor(self) -> Hashable:
        return (self.task.id, self.at)

    def expert(self) -> str:
        decisive = self.task.params["decisive"]
        colours = self.task.params["colours"]
        return f"take {colours[decisive.index(self.at)] if self.at in decisive else COLOURS[0]}"

    def save(self) -> bytes:
        return json.dumps([self.at, self.right]).encode()

    def load(self, data: bytes) -> None:
        self.at, self.right = json.loads(data)
