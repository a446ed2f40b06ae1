"""Guess a number: each wrong guess is answered with too low or too high, and nothing else is remembered for you."""

import json
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest, generator
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of


@dataclass(frozen=True)
class RangeLevel:
    """Level of the game: size of the range, its largest shift, and the number of guesses."""

    size: int
    highest: int
    turns: int


# Halving needs 4, 7 and 10 guesses at most; one more leaves room for a slip, and little for luck.
LEVELS = {"easy": RangeLevel(15, 999, 5), "medium": RangeLevel(100, 9_999, 8), "hard": RangeLevel(1000, 99_999, 11)}
_TASKS = {"train": 100_000, "validation": 10_000, "test": 10_000}
_LISTED = 100  # a longer range is not listed as admissible commands
_GUESS = re.compile(r"guess ([0-9]{1,9})")


class GuessNumber(TextEnv):
    """Find the number in a range of which only the ends are known.

    Task:
        A number from a range that the first text names.
    Observation:
        Whether the last guess was too low or too high, and nothing of earlier guesses. ``progress`` is the share of the
        information gained so far.
    Actions:
        ``guess NUMBER``, with a number of the range; anything else is invalid. Ranges above 100 numbers are not listed
        as admissible.
    Reward:
        1 for the number, and nothing else.
    End:
        Success when the number is guessed. An episode cannot fail; it is truncated at ``max_turns``.
    Splits:
        train, validation and test. Tasks differ in range and number, and each belongs to one split.
    Expert:
        Halves what is left.
    Floors:
        Halving needs 4, 7 and 10 guesses at most (easy, medium, hard), and the levels allow one more. ``manyturn envs
        manyturn/GuessNumber-v0`` measures expert and random policy.

    Args:
        split: split that ``reset`` draws from.
        difficulty: easy (15 numbers, 5 turns), medium (100, 8) or hard (1000, 11).
        max_turns: overrides the level's limit.
    """

    instructions = (
        "Guess the number. After each wrong guess you learn whether it was too low or too high. You have few "
        "guesses, so halve the remaining range. Command: guess NUMBER."
    )
    part_names = ()
    levels = LEVELS
    level: RangeLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"
        level = self.level

        def make(number: int) -> Task:
            rng = generator("guess number", prefix, number)
            while True:
                low = int(rng.integers(1, level.highest - level.size + 2))
                high = low + level.size - 1
                params: dict[str, Any] = {"low": low, "high": high, "secret": int(rng.integers(low, high + 1))}
                if split_of(digest(params)) == split:
                    return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._low, self._high, self._secret = (task.params[name] for name in ("low", "high", "secret"))
        self._range = (self._low, self._high)
        return f"I am thinking of a number from {self._low} to {self._high}."

    def respond(self, action: str) -> Turn:
        low, high = self._range
        match = _GUESS.fullmatch(action)
        if match is None or not low <= int(match[1]) <= high:
            return self.invalid(f"Say: guess NUMBER, from {low} to {high}.")
        guess = int(match[1])
        if guess == self._secret:
            self._low, self._high = guess + 1, guess
            return self.succeed(f"The number is {guess}. You found it.")
        if guess < self._secret:
            self._low = max(self._low, guess + 1)
            return self.go_on(f"{guess} is too low.")
        self._high = min(self._high, guess - 1)
        return self.go_on(f"{guess} is too high.")

    def admissible(self) -> list[str] | None:
        """Every number of the range, those that are ruled out too: to know which is the task."""
        low, high = self._range
        return [f"guess {n}" for n in range(low, high + 1)] if high - low < _LISTED else None

    def anchor(self) -> Hashable:
        return (self.task.id, self._low, self._high)

    def progress(self) -> float:
        """Share of the information that was gained so far; 1 only when the number was guessed."""
        low, high = self._range
        return 1 - math.log(self._high - self._low + 2) / math.log(high - low + 2)

    def expert(self) -> str:
        return f"guess {(self._low + self._high) // 2}"

    def answer(self) -> str:
        return f"guess {self._secret}"

    def save(self) -> bytes:
        return json.dumps([self._low, self._high]).encode()

    def load(self, data: bytes) -> None:
        self._low, self._high = json.loads(data)
