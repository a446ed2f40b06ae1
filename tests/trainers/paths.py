"""A world in which a success is hardly ever met: no text says which path is right, and one mistake loses the walk."""

from functools import cache
from itertools import permutations

import manyturn as mt
from manyturn.envs.contract.random_keys import generator

COLOURS = ("red", "blue", "green", "white", "black", "brown")
PLACES = ("mill", "ford", "hill", "farm", "well", "gate")
TURNS = 5  # one walk in 6^5 is right at random


class Paths(mt.TextEnv):
    """Walks past five of six places; the right path at a place is the same in every task."""

    instructions = "Take the right path at each place. Command: take COLOUR."
    max_turns = TURNS

    def tasks(self, split):
        share = {"train": range(0, 12), "validation": range(12, 14), "test": range(14, 64)}[split]
        return [mt.Task(f"{split}/{n}", split, {"walk": walks()[n]}) for n in share]

    def begin(self, task, rng):
        self.at, self.right = 0, True
        return self.task.params["walk"][0]

    def respond(self, action):
        self.right = self.right and action == self.expert()
        self.at += 1
        if self.at < TURNS:
            return self.go_on(self.task.params["walk"][self.at])
        return self.succeed("home") if self.right else self.fail("lost")

    def admissible(self):
        return [f"take {colour}" for colour in COLOURS]

    def expert(self):
        place = PLACES.index(self.task.params["walk"][self.at])
        return f"take {COLOURS[int(generator('right paths').integers(6, size=6)[place])]}"


@cache
def walks():
    every = list(permutations(PLACES, TURNS))
    return [every[int(n)] for n in generator("walks").permutation(len(every))]
