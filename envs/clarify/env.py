"""A customer's request that may fit several things, as an environment."""

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.clarify.question_value import WORTH, QuestionValues, Things
from manyturn.envs.clarify.requests import LEVELS, VALUES, ClarifyLevel, fitting, requests
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.options.options import unknown
from manyturn.envs.contract.tasks.task import Task

REWARDS = ("outcome", "turns")
QUESTION, REGRET = "question", "regret"
_ACTION = re.compile(r"(ask|bring) ([a-z]{1,20}|[0-9]{1,3})")


class Clarify(TextEnv):
    """Bring what a customer means, and ask first only where a question is worth its price.

    Task:
        A request that fits one thing (three of ten requests) or several. The shelf shows how often customers with such
        a request took each, and these counts are the true odds of what is meant. In the manner of SpeakRL (arXiv
        2512.13159) and Ask-to-Act (arXiv 2504.00907), with worlds of its own.
    Observation:
        The request, the prices of questions, and the shelf; then the customer's answers. ``progress`` is the
        probability of the likeliest thing. ``info["question_value"]`` is the exact value of the best question.
    Actions:
        ``ask ATTRIBUTE``, such as ``ask colour``, or ``bring NUMBER``.
    Reward:
        1 for the right thing, and the part ``question``, the price of a question, taken off. ``turns`` adds the part
        ``regret``: the exact expected return of the action less that of the best one, at most 0. It preserves the best
        policy, which earns 0 of it.
    End:
        ``bring`` ends the episode.
    Splits:
        train, validation and test share no request; ``test_unseen`` has nouns with named attributes that no other has.
    Expert:
        Asks the question of the highest expected return if its value is above 0, and else brings the likeliest thing.
    Floors:
        ``manyturn envs manyturn/Clarify-v0`` measures expert and random policy. Measures: ``questions``, ``needless``
        (questions of no value), ``missing`` (1 if it acted where a question had value), ``regret``.

    Args:
        split: split that ``reset`` draws from.
        difficulty: ``tiny`` (2 things, both fit, and answers say what is left), ``easy`` (4 things, up to 3 fit),
            ``medium`` (6, 4, each question at its own price) or ``hard`` (9, 6).
        rewards: ``outcome``, or ``turns``, which adds ``regret``.
        max_turns: overrides the level's limit; values of questions count the turns that are left.
    """

    splits = ("train", "validation", "test", "test_unseen")
    harmless = (*TextEnv.harmless, "rewards")
    levels = LEVELS
    level: ClarifyLevel

    def __init__(
        self, split: str = "train", difficulty: str = "tiny", rewards: str = "outcome", max_turns: int | None = None
    ):
        if rewards not in REWARDS:
            raise ValueError(unknown("rewards", rewards, REWARDS))
        super().__init__(split, max_turns, difficulty)
        self._pays_turns = rewards == "turns"
        self.part_names = (QUESTION, REGRET) if self._pays_turns else (QUESTION,)
        self.instructions = (
            f"Bring what the customer means. The right thing earns {WORTH} points and ends your work, and so does a "
            "wrong one. You may ask first, at a price in points. The shelf shows how often each thing was taken by "
            "customers with this request; things that do not fit the request are never meant. "
            f"Commands: {', '.join(f'ask {name}' for name in self.level.attributes)}, bring NUMBER."
        )

    def tasks(self, split: str) -> Sequence[Task]:
        return requests(split, self.difficulty or "")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        self._values = QuestionValues(Things(params["things"], params["counts"], params["prices"]))
        self._left = fitting(params)
        self._questions = self._needless = self._missing = 0
        self._regret, self._right = 0.0, None
        words = _thing({"noun": params["noun"], **params["words"]})
        shelf = [
            f"{place + 1}: {_thing(thing)}, {count} times."
            for place, (thing, count) in enumerate(zip(params["things"], params["counts"], strict=True))
        ]
        return "\n".join([f"Customer: the {words}, please.", self._prices(params["prices"]), *shelf])

    def _prices(self, prices: Mapping[str, int]) -> str:
        if not self.level.own_prices:
            return f"A question costs {next(iter(prices.values()))}."
        return f"Questions cost: {', '.join(f'{name} {price}' for name, price in prices.items())}."

    @property
    def _turns(self) -> int:
        """Turns that are left, this one included."""
        return self.max_turns - self.turn

    def respond(self, action: str) -> Turn:
        match = _ACTION.fullmatch(action.strip())
        if match is not None and match[1] == "ask" and match[2] in self.level.attributes:
            return self._answered(match[2])
        if match is not None and match[1] == "bring" and match[2].isdecimal():
            place = int(match[2]) - 1
            if 0 <= place < len(self.task.params["things"]):
                return self._brought(place)
        return self.invalid(
            f"Say ask and one of {', '.join(self.level.attributes)}, or bring and a number of the shelf.",
            **self._paid(self._values.best(self._left, self._turns - 1)),
        )

    def _answered(self, attribute: str) -> Turn:
        params = self.task.params
        self._questions += 1
        self._needless += self._values.gain(self._left, attribute, self._turns) <= 0
        parts = self._paid(self._values.of_question(self._left, attribute, self._turns))
        value = params["things"][params["meant"]][attribute]
        self._left = self._values.remaining(self._left, attribute, value)
        left = f" Left: {', '.join(str(place + 1) for place in self._left)}." if self.level.helpful else ""
        return self.go_on(f"Customer: {value}.{left}", question=-params["prices"][attribute] / WORTH, **parts)

    def _brought(self, place: int) -> Turn:
        self._missing += self._values.best_question(self._left, self._turns) is not None
        parts = self._paid(self._values.of_choice(self._left, place))
        self._right = place == self.task.params["meant"]
        thing = _thing(self.task.params["things"][self.task.params["meant"]])
        if self._right:
            return self.succeed(f"Customer: yes, the {thing}.", **parts)
        return self.fail(f"Customer: no, I meant the {thing}.", **parts)

    def _paid(self, value: float) -> dict[str, float]:
        """The part for an action of this expected return."""
        regret = value - self._values.best(self._left, self._turns)
        self._regret -= regret
        return {REGRET: regret} if self._pays_turns else {}

    def admissible(self) -> list[str]:
        brings = [f"bring {number + 1}" for number in range(len(self.task.params["things"]))]
        return [*(f"ask {name}" for name in self.level.attributes), *brings]

    def anchor(self) -> Hashable:
        return (self.task.id, self._left, self.observation)

    def progress(self) -> float:
        """Probability of the likeliest thing; after the end 1 if the right thing was brought, else 0."""
        if self._right is not None:
            return float(self._right)
        return self._values.of_choice(self._left, self._values.likeliest(self._left))

    def notes(self) -> Mapping[str, Any]:
        if self._right is not None or self._turns < 1:
            return {}
        gains = (self._values.gain(self._left, name, self._turns) for name in self.level.attributes)
        return {"question_value": max(gains)}

    def measures(self) -> Mapping[str, float]:
        counts = {"questions": self._questions, "needless": self._needless, "missing": self._missing}
        return {**{name: float(count) for name, count in counts.items()}, REGRET: self._regret}

    def expert(self) -> str:
        question = self._values.best_question(self._left, self._turns)
        return f"bring {self._values.likeliest(self._left) + 1}" if question is None else f"ask {question}"

    def answer(self) -> str:
        return f"bring {self.task.params['meant'] + 1}"

    def save(self) -> bytes:
        counts = [self._questions, self._needless, self._missing]
        return json.dumps([self._left, counts, self._regret, self._right]).encode()

    def load(self, data: bytes) -> None:
        left, counts, self._regret, self._right = json.loads(data)
        self._left = tuple(left)
        self._questions, self._needless, self._missing = counts


def _thing(thing: Mapping[str, str]) -> str:
    """A thing in words.

    >>> _thing({"noun": "cup", "colour": "red", "size": "small"})
    'small red cup'
    """
    return " ".join([*(thing[name] for name in VALUES if name in thing), thing["noun"]])
