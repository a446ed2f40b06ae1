"""A world to measure rollouts in: episodes of different lengths, whose observations differ in length too."""

import time

import manyturn as mt

FEWEST, MOST = 3, 9  # turns of an episode
EVERY = 4  # each such task is slow, where there are slow ones
_WORDS = "a lamp door key table window chair grey old small red open near far and the by".split()


class Errand(mt.TextEnv):
    """Answers with more or fewer words, and ends after as many turns as the task says.

    Args:
        seconds: that a turn of a slow task takes.
    """

    instructions = "Say what comes to mind."
    max_turns = MOST

    def __init__(self, seconds: float = 0.0):
        super().__init__()
        self.seconds = seconds

    def tasks(self, split):
        return mt.GeneratedTasks(lambda i: mt.Task(f"{split}/{i}", split, {"number": i}), 100_000, f"{split}/")

    def begin(self, task, rng):
        self.number, self.rng = task.params["number"], rng
        return self.view(30)

    def respond(self, action):
        if self.seconds and self.number % EVERY == 0:  # sleeping for 0 seconds takes 0.1 ms
            time.sleep(self.seconds)
        if self.turn + 1 >= FEWEST + self.number % (MOST - FEWEST + 1):
            return self.succeed("Done.")
        return self.go_on(self.view(10))

    def view(self, fewest: int) -> str:
        """A text of words, at least so many and at most three times as many."""
        count = int(self.rng.integers(fewest, 3 * fewest))
        return " ".join(self.rng.choice(_WORDS, count))
