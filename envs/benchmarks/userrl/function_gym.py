"""UserRL's FunctionGym: find a hidden rule of four numbers by trying it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.envs.benchmarks.userrl.actions import read
from manyturn.envs.benchmarks.userrl.base_gym import MOST_TURNS
from manyturn.envs.benchmarks.userrl.files import Record, Source, tasks_of
from manyturn.envs.benchmarks.userrl.number_rules import NAMES, Rule, Uncomputable, made
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, split_of

_SOURCE = Source("function", ("gyms/FunctionGym/functiongym/data/functions.json",))
_COUNTS = {"train": 5_000, "validation": 500, "test": 500}
_BIGGEST = 10  # of the numbers of a made test case
_TOLERANCE = 1e-6
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_ANSWER = re.compile(r"[+-]?\d+(?:\.\d*)?", re.ASCII)
_LONGEST_NUMBER = 40  # characters


class Function(TextEnv):
    """Find a rule such as ``(a + b) * c - d ** 2`` by trying numbers, and say what it gives for the test case.

    Task:
        A hidden rule from four numbers to one, and a test case. UserRL's FunctionGym (Qian et al. 2025, arXiv
        2509.19736); rules are made from numbers, or official. There is no user.
    Observation:
        What the rule gives for the numbers tried, the test case, or whether the answer was right.
    Actions:
        ``[action] 1 2 3 4`` tries numbers, ``[search] test`` shows the test case, ``[answer] NUMBER`` answers,
        ``[finish]`` gives up. The test case itself cannot be tried.
    Reward:
        1 for the right answer. A wrong one costs nothing but the turn.
    End:
        Success at the right answer; failure at ``[finish]``.
    Splits:
        Made rules of two splits are different functions. With ``data``, test is the official one and validation a tenth
        of the official train split; 28 of the 78 official test rules are, written otherwise, the same function as one
        of train.
    Expert:
        Knows the rule and answers immediately.
    Floors:
        ``manyturn envs manyturn/UserRL-Function-v0`` measures the random policy. Giving up earns nothing.

    Args:
        split: train, validation or test.
        data: a checkout of SalesforceAIResearch/UserRL; default: rules made from numbers, of the original's kind.
        max_turns: default 16, in which its authors train and evaluate.
    """

    instructions = (
        "A hidden rule takes four numbers a, b, c, d to one number, by adding, subtracting, multiplying, dividing and "
        "raising to a power. Each turn, write one of: [action] and four numbers, such as [action] 1 2 3 4, to see what "
        "the rule gives; [search] test to read the test case; [answer] and a number, what the rule gives for the test "
        "case; you may answer again. [finish] gives up."
    )
    max_turns = MOST_TURNS
    part_names = ()

    def __init__(self, split: str = "train", data: str | Path | None = None, max_turns: int | None = None):
        super().__init__(split, max_turns)
        self._official = None if data is None else tasks_of(data, _SOURCE, problem)

    def tasks(self, split: str) -> Sequence[Task]:
        if self._official is not None:
            return self._official[split]
        return GeneratedTasks(lambda number: _made(split, number), _COUNTS[split], f"{split}/made-")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._rule = Rule(task.params["rule"])
        return "The rule is ready."

    def respond(self, action: str) -> Turn:
        choice, content = read(action)
        match choice:
            case "action":
                return self._tried(content)
            case "search" if content.lower() == "test":
                return self.go_on(f"Test case: {_listed(self.task.params['case'])}")
            case "answer":
                return self._answered(content)
            case "finish":
                return self.fail("You have given up.")
        return self.unreadable("Write [action] and four numbers, [search] test, [answer] and a number, or [finish].")

    def _tried(self, content: str) -> Turn:
        written = _NUMBER.findall(content)
        if len(written) != len(NAMES) or max(map(len, written)) > _LONGEST_NUMBER:
            return self.invalid("Write [action] and four numbers.")
        numbers = [float(one) for one in written]
        if numbers == self.task.params["case"]:
            return self.go_on("That is the test case: try other numbers.")
        try:
            return self.go_on(f"{_listed(numbers)} -> {_number(self._rule(numbers))}")
        except Uncomputable:
            return self.go_on(f"{_listed(numbers)} -> no number (a division by zero, or too large): try others.")

    def _answered(self, content: str) -> Turn:
        if len(content) > _LONGEST_NUMBER or not _ANSWER.fullmatch(content):
            return self.invalid("Write [answer] and one number.")
        if abs(float(content) - self.task.params["value"]) <= _TOLERANCE:
            return self.succeed("That is right.")
        return self.go_on("That is wrong.")

    def answer(self) -> str:
        return f"[answer] {self.task.params['value']!r}"

    def expert(self) -> str:
        return self.answer()


def problem(record: Record) -> Mapping[str, Any]:
    """The problem of an official record. Raises ValueError if its rule does not give its value."""
    case = [float(number) for number in record["test_case"]]
    value, rule = float(record["expected_result"]), Rule(record["rule"])
    if len(case) != len(NAMES) or abs(rule(case) - value) > _TOLERANCE:
        raise ValueError(f"the rule {rule.text!r} does not give {value} for its test case")
    return {"rule": rule.text, "case": case, "value": value}


def _made(split: str, number: int) -> Task:
    """A rule of the split, with a test case whose value is a whole number other than zero."""
    assert split in SPLITS
    draws = Draws("userrl function", split, number)
    while True:
        rule = made(draws)
        case = [float(draws.between(1, _BIGGEST)) for _ in NAMES]
        try:
            value = rule(case)
        except Uncomputable:
            continue
        if value and value == round(value) and split_of(rule.key) == split:
            return Task(f"{split}/made-{number}", split, {"rule": rule.text, "case": case, "value": value})


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(map(_number, numbers))


def _number(value: float) -> str:
    """At most four decimals, none for a whole number."""
    return f"{round(value, 4) + 0.0:.15g}"  # without a zero's sign
