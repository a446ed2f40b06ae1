"""A small environment with a true answer: a number from 1 to 8, of which halving finds each within four guesses."""

import manyturn as mt
from manyturn.envs.classics.guess_number import GuessNumber


class Eight(GuessNumber):
    max_turns = 4

    def __init__(self, split="train"):
        super().__init__(split, max_turns=4)

    def tasks(self, split):
        """The same eight problems under many names, so that splits share no task."""
        first = {"train": 0, "validation": 4, "test": 5}[split]
        count = 4 if split == "train" else 1
        return [
            mt.Task(f"{split}/{name}/{secret}", split, {"low": 1, "high": 8, "secret": secret, "name": name})
            for name in range(first, first + count)
            for secret in range(1, 9)
        ]
