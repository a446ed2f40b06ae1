"""A small world in which every recipe has what it asks for: kinds of tasks, progress, an answer, recurring states.

The first observation says which door has which colour, and each door asks for its own. A wrong answer costs a turn, and
there are more turns than the first horizon of a growing one.
"""

from dataclasses import replace
from itertools import product

import manyturn as mt
from manyturn.envs.contract.random_keys import generator

COLOURS = ("red", "blue", "green", "white", "black", "brown")
DOORS = ("First", "Second", "Third", "Fourth")
FLOORS = {"low": 3, "high": 4}


class Floors(mt.TextEnv):
    instructions = "Open the doors by naming the colour of each. Command: open COLOUR."
    max_turns = 6

    def tasks(self, split):
        share = {"train": range(5), "validation": [5], "test": [6]}[split]
        orders = [(floor, order) for floor, doors in FLOORS.items() for order in product(COLOURS, repeat=doors)]
        return [
            mt.Task(f"{split}/{number}", split, {"order": order}, difficulty=floor)
            for number, (floor, order) in enumerate(orders)
            if number % 7 in share
        ]

    def begin(self, task, rng):
        self.open = 0
        told = zip(DOORS, task.params["order"], strict=False)
        return f"{' '.join(f'{door}: {colour}.' for door, colour in told)} {self._asking()}"

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid(self._asking())
        self.open += action == self.expert()
        return self.go_on(self._asking()) if self.progress() < 1 else self.succeed("Home.")

    def admissible(self):
        return [f"open {colour}" for colour in COLOURS]

    def progress(self):
        return self.open / len(self.task.params["order"])

    def answer(self):
        return f"open {self.task.params['order'][-1]}"

    def expert(self):
        return f"open {self.task.params['order'][self.open]}"

    def _asking(self):
        return f"{DOORS[self.open]}?"


class Noise(Floors):
    """The same tasks and verdicts, in which each turn earns at random."""

    def begin(self, task, rng):
        self.said = []
        return super().begin(task, rng)

    def respond(self, action):
        self.said.append(action)
        earned = generator("noise", self.task.id, self.said).choice([-1.0, 1.0])
        return replace(super().respond(action), parts={"noise": float(earned)})


class Rubric(Floors):
    """The same tasks and verdicts, in which a rubric counts the doors that opened at the first attempt."""

    part_names = ("outcome", "rubric")

    def begin(self, task, rng):
        self.wrong = False
        return super().begin(task, rng)

    def respond(self, action):
        was = self.open
        turn = super().respond(action)
        first, self.wrong = not self.wrong and self.open > was, self.open == was
        return replace(turn, parts={**turn.parts, "rubric": float(first)})
