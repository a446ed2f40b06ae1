"""Tasks: one thing to compute, or several of which each needs the one before."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.code_interpreter.families import FAMILIES, KNOWN, UNSEEN, Family, Params
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of

LEVELS = {"easy": 1, "medium": 2, "hard": 3}
"""Difficulty -> things to compute."""
SIZES = {"train": 100_000, "validation": 10_000, "test": 10_000, "test_unseen": 10_000}
_LETTERS = "ABC"


def tasks(split: str, difficulty: str) -> Sequence[Task]:
    """The tasks of a split. No thing with the same params occurs in two splits, no unseen family in another one."""
    prefix = f"{split}/{difficulty}/"

    def make(number: int) -> Task:
        draws = Draws("code", prefix, number)
        drawn = _sample(draws, UNSEEN if split == "test_unseen" else KNOWN, LEVELS[difficulty])
        steps = [[family.name, _params(family, split, draws)] for family in drawn]
        n = drawn[0].low + draws.below(drawn[0].span)
        return Task(f"{prefix}{number}", split, {"n": n, "steps": steps}, difficulty, tuple(f.name for f in drawn))

    return GeneratedTasks(make, SIZES[split], prefix)


def _sample(draws: Draws, families: Sequence[Family], count: int) -> list[Family]:
    left = list(families)
    return [left.pop(draws.below(len(left))) for _ in range(count)]


def _params(family: Family, split: str, draws: Draws) -> Params:
    while True:
        params = family.draw(draws)
        if split == "test_unseen" or split_of(digest(family.name, params)) == split:
            return params


def question(params: Mapping[str, Any]) -> str:
    """Question in words."""
    lines = []
    for place, (name, fixed) in enumerate(params["steps"]):
        family, letter = FAMILIES[name], _LETTERS[place]
        shown = {key: _shown(value) for key, value in fixed.items()}
        what = family.text.format(n="n" if place else params["n"], **shown)
        where = f" Here n = {_next(family, place)}." if place else ""
        lines.append(f"{letter} is {what}.{where}")
    return "\n".join([*lines, f"What is {_LETTERS[len(lines) - 1]}?"])


def _shown(value: Any) -> str:
    if isinstance(value, list) and isinstance(value[0], list):
        return "; ".join(" ".join(map(str, row)) for row in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _next(family: Family, place: int) -> str:
    """A family's n, from the result of the thing before."""
    return f"{family.low} + {_LETTERS[place - 1]} % {family.span}"


def cells(params: Mapping[str, Any]) -> list[str]:
    """Python that computes the things, one cell for each; a cell uses the result of the one before, and shows its own.

    The text is that of ``solutions``, so an expert's answer is right exactly if a sandbox computes as this process.
    """
    made = []
    for place, (name, fixed) in enumerate(params["steps"]):
        family, letter = FAMILIES[name], _LETTERS[place]
        n = _next(family, place) if place else str(params["n"])
        given = ", ".join(f"{key}={value!r}" for key, value in fixed.items())
        made.append(f"{inspect.getsource(family.solve)}\n\n{letter} = {name}({n}, {given})\nprint({letter})")
    return made


def answer(params: Mapping[str, Any]) -> int:
    """The result of the last thing. It takes some milliseconds."""
    n, value = params["n"], 0
    for place, (name, fixed) in enumerate(params["steps"]):
        family = FAMILIES[name]
        value = family.solve(family.low + value % family.span if place else n, **fixed)
    return value
