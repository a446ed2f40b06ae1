"""Countdown: reach a number by combining others, two at a time, as in the round of numbers or the game of 24."""

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, params_of_split

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class CountdownLevel:
    """Size of a task.

    Args:
        commands: that are known to reach the target; fewer may do.
        uses_all: True if no number may be left over, as in the game of 24.
        turns: that an episode may take, two of them for mistakes.
    """

    commands: int
    uses_all: bool
    turns: int


LEVELS = {
    "easy": CountdownLevel(2, uses_all=False, turns=6),
    "medium": CountdownLevel(3, uses_all=False, turns=6),
    "all": CountdownLevel(4, uses_all=True, turns=6),
}
_SIZE, _HIGHEST, _LARGEST_TARGET = 5, 99, 999
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}


class Countdown(TextEnv):
    """Reach a number by combining others, two at a time.

    Task:
        Five numbers and a target. Two numbers are replaced by their sum, difference, product or quotient until one is
        the target. On the level ``all`` it must be the last one, as in the game of 24.
    Observation:
        The numbers that there are now, and the target. ``progress`` is 1 at the target and 0 before.
    Actions:
        ``A + B``, ``A - B``, ``A * B`` and ``A / B`` with two of the numbers. Results are whole and above 0; anything
        else is invalid.
    Reward:
        1 when the target is reached, and nothing else.
    End:
        Success when the target is reached, failure when one number is left that is not the target. Truncated at
        ``max_turns``.
    Splits:
        train, validation and test share no task. Targets of ``test_unseen`` occur in no other split.
    Expert:
        Sees all numbers, and searches.
    Floors:
        ``manyturn envs manyturn/Countdown-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (2 commands are enough), medium (3) or all (4, no number left over).
        max_turns: overrides the level's limit.
    """

    instructions = (
        "Reach the target by combining numbers. A command takes two of the numbers and replaces them by the result: "
        "A + B, A - B, A * B or A / B. A result must be whole and above 0, and you cannot take a command back."
    )
    splits = (*SPLITS, "test_unseen")
    part_names = ()
    levels = LEVELS
    level: CountdownLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("countdown", prefix, number)
            params = params_of_split(lambda: draw_numbers(draws, self.level, split == "test_unseen"), split)
            return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._numbers: Numbers = tuple(task.params["numbers"])
        self._target: int = task.params["target"]
        self._uses_all: bool = task.params["uses_all"]
        return f"{self._look()}{' No number may be left over.' if self._uses_all else ''}"

    def respond(self, action: str) -> Turn:
        after = dict(_moves(self._numbers)).get(action.strip())
        if after is None:
            return self.invalid(f"You cannot do that. {self._look()}")
        self._numbers = after
        if _is_done(after, self._target, self._uses_all):
            return self.succeed(f"{self._look()} The target is reached.")
        if len(after) == 1:
            return self.fail(f"{self._look()} The target cannot be reached any more.")
        return self.go_on(self._look())

    def admissible(self) -> list[str]:
        return sorted(dict(_moves(self._numbers)))

    def anchor(self) -> Hashable:
        return (self.task.id, self._numbers)

    def progress(self) -> float:
        return float(_is_done(self._numbers, self._target, self._uses_all))

    def expert(self) -> str:
        """The first command of a solution; any if there is none any more."""
        return solution(self._numbers, self._target, self._uses_all) or self.admissible()[0]

    def save(self) -> bytes:
        return json.dumps(self._numbers).encode()

    def load(self, data: bytes) -> None:
        self._numbers = tuple(json.loads(data))

    def _look(self) -> str:
        return f"Numbers: {', '.join(map(str, self._numbers))}. Target: {self._target}."


def _drawn_move(draws: Draws, numbers: Numbers) -> Numbers:
    """The numbers after a random command."""
    while True:
        others = list(numbers)
        a, b = (others.pop(draws.below(len(others))) for _ in range(2))
        sign = draws.pick("+-*/")
        if sign == "/" and a % b:
            continue
        result = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[sign]
        if result > 0:
            return tuple(sorted([*others, result]))


def _is_done(numbers: Numbers, target: int, uses_all: bool) -> bool:
    return target in numbers and (len(numbers) == 1 or not uses_all)


def _moves(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Commands and the sorted numbers after them."""
    for i, a in enumerate(numbers):
        for j, b in enumerate(numbers):
            if i == j:
                continue
            others = [number for k, number in enumerate(numbers) if k not in (i, j)]
            for sign, result in (("+", a + b), ("-", a - b), ("*", a * b), ("/", a // b)):
                if result > 0 and (sign != "/" or a % b == 0):
                    yield f"{a} {sign} {b}", tuple(sorted([*others, result]))


@lru_cache(maxsize=4096)
def solution(numbers: Numbers, target: int, uses_all: bool) -> str | None:
    """The first command of a way to the target; None if there is none."""
    dead: set[Numbers] = set()

    def reaches(numbers: Numbers) -> bool:
        if _is_done(numbers, target, uses_all):
            return True
        if numbers in dead:
            return False
        if any(reaches(after) for _, after in _moves(numbers)):
            return True
        dead.add(numbers)
        return False

    return next((command for command, after in _moves(numbers) if reaches(after)), None)


def draw_numbers(draws: Draws, level: CountdownLevel, unseen: bool) -> dict[str, Any]:
    """The parameters of a task: numbers that combine to the target by random commands."""
    while True:
        numbers = tuple(sorted(draws.between(1, _HIGHEST) for _ in range(_SIZE)))
        after = numbers
        for _ in range(level.commands):
            after = _drawn_move(draws, after)
        target = after[0] if level.uses_all else draws.pick([n for n in after if n not in numbers] or [0])
        if 10 <= target <= _LARGEST_TARGET and target not in numbers and is_held_out("countdown", target) == unseen:
            return {"numbers": list(numbers), "target": target, "uses_all": level.uses_all}
