"""A world whose turns take their time: most are quick, some are slow, and an episode has as many as its task says.

How long a turn takes is drawn from a lognormal distribution with the episode's own key, so that it is known beforehand
and the same in every order of training.
"""

import math
import time

import manyturn as mt
from manyturn.envs.contract.random_keys import generator

WORDS = ("red", "blue", "green", "white", "black")
FEWEST, MOST = 2, 8  # turns of an episode


class Errands(mt.TextEnv):
    """Asks for a word at each turn, and pays for the share of words that were said.

    Args:
        seconds: that a turn takes in the median; 0: none takes any.
        tail: standard deviation of the logarithm of the seconds; 1 makes one in a hundred ten times as long.
    """

    instructions = "Say the word that you are asked for."
    max_turns = MOST

    def __init__(self, seconds: float = 0.0, tail: float = 1.0):
        super().__init__()
        self.seconds, self.tail = seconds, tail

    def tasks(self, split):
        first = 1000 * self.splits.index(split)
        return mt.GeneratedTasks(lambda i: mt.Task(f"{split}/{i}", split, {"number": first + i}), 1000, f"{split}/")

    def begin(self, task, rng):
        self.number, self.rng, self.right = task.params["number"], rng, 0
        return self._ask()

    def respond(self, action):
        self.right += action == self.word
        time.sleep(turn_seconds(self.seconds, self.tail, self.number, self.turn))
        if self.turn + 1 < turns_of(self.number):
            return self.go_on(self._ask())
        share = self.right / turns_of(self.number)
        return self.succeed("Done.", outcome=1.0) if share == 1 else self.fail("Done.", outcome=share)

    def _ask(self) -> str:
        self.word = str(self.rng.choice(WORDS))
        return f"Say {self.word}."

    def expert(self):
        return self.word


def turns_of(number: int) -> int:
    """Turns of a task's episodes: few are long."""
    return min(MOST, FEWEST + int(generator("turns", number).exponential(1.5)))


def turn_seconds(median: float, tail: float, number: int, turn: int) -> float:
    """Seconds of a turn of a task."""
    return median * math.exp(tail * generator("seconds", number, turn).standard_normal())
