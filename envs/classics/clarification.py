"""Clarification: a request that may fit several things, questions that cost, and the value of each question known."""

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, params_of_split

Item = tuple[str, ...]  # a value for each attribute of the level

_VALUES = {
    "colour": ("red", "blue", "green", "white", "black", "yellow"),
    "size": ("small", "medium", "large"),
    "material": ("wooden", "steel", "glass", "paper"),
    "shape": ("round", "square", "oval"),
}
_NOUNS = (
    "cup", "bowl", "box", "plate", "tray", "vase", "lamp", "bin", "jar", "lid", "basket", "frame",
    "case", "mirror", "clock", "stool", "table", "shelf", "bottle", "pot", "spoon", "rack", "crate", "mug",
)  # fmt: skip


@dataclass(frozen=True)
class ClarificationLevel:
    """Size of a task.

    Args:
        attributes: of each item.
        items: on the shelf.
        turns: that an episode may take.
    """

    attributes: int
    items: int
    turns: int


LEVELS = {
    "easy": ClarificationLevel(2, 6, turns=5),
    "medium": ClarificationLevel(3, 8, turns=6),
    "hard": ClarificationLevel(4, 10, turns=8),
}
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}


class Clarification(TextEnv):
    """Give a customer the right thing, and ask first only where it is worth the cost.

    Task:
        Things of one kind lie on a shelf, and a customer wants one of them. The request names some of its attributes.
        In half of the tasks only one thing fits. Otherwise each thing that fits is equally likely to be meant.
    Observation:
        The shelf and the request, then the customer's answers. ``progress`` is the share of fitting things that answers
        have ruled out, and 1 when the right one is given.
    Actions:
        ``ask ATTRIBUTE``, and ``give THING`` with the words on the shelf.
    Reward:
        1 for the right thing, and the part ``question``, minus ``cost`` for each question. ``question_value`` is what
        asking about an attribute is worth, and ``value`` what the best policy still earns on average, both exact.
    End:
        The first thing that is given. Truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. The kind of thing and the colour that are meant in ``test_unseen`` lie
        together on no shelf of another split.
    Expert:
        Asks what is worth most, and nothing that is worth less than its cost.
    Floors:
        ``manyturn envs manyturn/Clarification-v0`` measures expert and random policy on every level.

    Measures are ``questions``, ``needless`` (questions that were not worth their cost) and ``missed`` (1 if a thing was
    given although a question was worth its cost). When to ask is learned in SpeakRL (arXiv 2512.13159) from judges'
    verdicts, here from a value that is known.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (2 attributes, 6 things), medium (3, 8) or hard (4, 10).
        cost: of a question, from 0 to 1.
        max_turns: overrides the level's limit.
    """

    instructions = (
        "Give the customer what they want. The request may fit several things on the shelf. You can ask about an "
        "attribute, but each question costs. Commands: ask ATTRIBUTE, give THING, such as give red cup."
    )
    splits = (*SPLITS, "test_unseen")
    part_names = ("question",)
    levels = LEVELS
    level: ClarificationLevel
    harmless = (*TextEnv.harmless, "cost")

    def __init__(self, split: str = "train", difficulty: str = "easy", cost: float = 0.1, max_turns: int | None = None):
        if not 0.0 <= cost <= 1.0:
            raise ValueError(f"cost must be from 0 to 1, not {cost}")
        self.cost = float(cost)
        super().__init__(split, max_turns, difficulty)
        self._attributes = tuple(_VALUES)[: self.level.attributes]

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("clarification", prefix, number)
            params = params_of_split(lambda: _drawn(draws, self.level, split == "test_unseen"), split)
            return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._noun: str = task.params["noun"]
        self._items = tuple(tuple(item) for item in task.params["items"])
        self._meant = self._items[task.params["meant"]]
        self._heard: dict[str, str] = dict(task.params["stated"])
        self._first = len(self._fitting())
        self._questions = self._needless = self._missed = 0
        self._right = False
        shelf = ", ".join(self._name(item) for item in self._items)
        wish = " ".join([*(self._heard[name] for name in self._attributes if name in self._heard), self._noun])
        return f"On the shelf: {shelf}. The customer wants a {wish}."

    def respond(self, action: str) -> Turn:
        verb, _, rest = action.strip().partition(" ")
        if verb == "ask" and rest in self._attributes:
            return self._asked(rest)
        item = next((item for item in self._items if self._name(item) == rest), None)
        if verb != "give" or item is None:
            return self.invalid("You cannot do that.")
        best = max((self.question_value(name) for name in self._attributes), default=0.0)
        self._missed, self._right = int(best > 0), item == self._meant
        if self._right:
            return self.succeed("The customer is content.")
        return self.fail(f"The customer wanted the {self._name(self._meant)}.")

    def _asked(self, attribute: str) -> Turn:
        self._questions += 1
        self._needless += self.question_value(attribute) <= 0
        self._heard[attribute] = self._meant[self._attributes.index(attribute)]
        return self.go_on(f"The customer says: {self._heard[attribute]}.", question=-self.cost)

    def question_value(self, attribute: str) -> float:
        """Worth of a question: what the best policy earns on average after it, less what it earns by giving now."""
        fitting = self._fitting()
        return _after_question(fitting, self._attributes.index(attribute), self.cost) - 1 / len(fitting)

    def value(self) -> float:
        """What the best policy still earns on average."""
        return _value(self._fitting(), self.cost)

    def admissible(self) -> list[str]:
        return [*(f"ask {name}" for name in self._attributes), *(f"give {self._name(item)}" for item in self._items)]

    def anchor(self) -> Hashable:
        return (self.task.id, tuple(sorted(self._heard)), self.observation)

    def progress(self) -> float:
        return 1.0 if self._right else (self._first - len(self._fitting())) / self._first

    def measures(self) -> Mapping[str, float]:
        return {"questions": self._questions, "needless": self._needless, "missed": self._missed}

    def expert(self) -> str:
        """The best question, if one is worth its cost; else a thing that fits."""
        values = [self.question_value(name) for name in self._attributes]
        best = int(np.argmax(values))
        return f"ask {self._attributes[best]}" if values[best] > 0 else f"give {self._name(self._fitting()[0])}"

    def save(self) -> bytes:
        return json.dumps([self._heard, self._questions, self._needless, self._missed, self._right]).encode()

    def load(self, data: bytes) -> None:
        self._heard, self._questions, self._needless, self._missed, self._right = json.loads(data)

    def _fitting(self) -> tuple[Item, ...]:
        heard = [(self._attributes.index(name), value) for name, value in self._heard.items()]
        return tuple(item for item in self._items if all(item[place] == value for place, value in heard))

    def _name(self, item: Item) -> str:
        return " ".join([*item, self._noun])


@lru_cache(maxsize=4096)
def _value(fitting: tuple[Item, ...], cost: float) -> float:
    """What the best policy earns on average where each of these is equally likely to be meant."""
    questions = (_after_question(fitting, place, cost) for place in range(len(fitting[0])))
    return max(1 / len(fitting), *questions)


def _after_question(fitting: tuple[Item, ...], place: int, cost: float) -> float:
    """The same if the attribute at this place is asked for first."""
    groups = Counter(item[place] for item in fitting)
    if len(groups) == 1:
        return 1 / len(fitting) - cost
    left = (tuple(item for item in fitting if item[place] == value) for value in groups)
    return sum(len(group) / len(fitting) * _value(group, cost) for group in left) - cost


def _drawn(draws: Draws, level: ClarificationLevel, unseen: bool) -> dict[str, Any]:
    """A task: noun, items, stated attributes and the place of the item that is meant."""
    names = tuple(_VALUES)[: level.attributes]
    ambiguous = bool(draws.below(2))
    while True:
        noun = draws.pick(_NOUNS)
        items = list(dict.fromkeys(tuple(draws.pick(_VALUES[name]) for name in names) for _ in range(level.items)))
        meant = draws.below(len(items))
        held = [is_held_out(noun, item[0]) for item in items]
        stated = {name: items[meant][place] for place, name in enumerate(names) if draws.below(2)}
        fits = sum(all(item[names.index(name)] == value for name, value in stated.items()) for item in items)
        of_split = held[meant] if unseen else not any(held)
        if len(items) == level.items and (fits > 1) == ambiguous and of_split:
            return {"noun": noun, "items": items, "stated": stated, "meant": meant}
