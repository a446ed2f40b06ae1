"""Twenty questions about everyday things, and guessing a made-up city with its atlas in hand."""

import abc
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.talk.guessing.cities import draw_cities, in_words
from manyturn.envs.talk.guessing.everyday_objects import THINGS
from manyturn.envs.talk.guessing.oracle import Oracle, answer_in
from manyturn.envs.talk.guessing.trait_table import Table
from manyturn.envs.talk.talk_env import TalkEnv
from manyturn.envs.users.user_env import Maker, NoOptions

_TASKS = {"train": 100_000, "validation": 10_000, "test": 10_000}
_GUESS = re.compile(r"guess (\w[\w -]{0,40})")


@dataclass(frozen=True)
class GuessingLevel:
    """Level: the number of things and of turns."""

    choices: int
    turns: int


class Guessing(TalkEnv):
    """Find out by yes-or-no questions which of several things the user thinks of.

    A guess ends the episode: it pays 1 if it is right. ``progress`` is the share of the information that answers gave,
    and ``info["information"]`` what the last turn gave, in bits, counted over the things named at the beginning. An
    answer of a user that is neither yes nor no gives none.

    Args:
        split, user, rewards: see ``TalkEnv``; ``rewards="turns"`` adds the part ``information``.
        difficulty: one of ``levels``.
        max_turns: overrides the level's limit.
    """

    turn_part = "information"
    level: GuessingLevel
    about: str

    @abc.abstractmethod
    def table_of(self, task: Task) -> Table:
        """The things that it can be, with their traits."""

    def opening(self, task: Task) -> str:
        """First words of the user."""
        return f"I am thinking of one of these: {', '.join(task.params['choices'])}."

    def makers(self) -> Mapping[str, Maker]:
        return {"rule": Maker(NoOptions, lambda _: Oracle(self._secret_of, self.opening))}

    def brief(self, task: Task) -> str:
        return (
            f"You are thinking of {task.params['secret']}, one of: {', '.join(task.params['choices'])}. Begin by "
            "telling the assistant these names, and never say which one it is. Answer its questions with Yes., "
            f"No. or I do not know.\n{self.opening(task)}"
        )

    def _secret_of(self, task: Task) -> tuple[Table, str]:
        return self.table_of(task), task.params["secret"]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._table = self.table_of(task)
        self._choices: list[str] = list(task.params["choices"])
        self._left = list(self._choices)
        self._trait_names: list[str] = []
        self._gained = 0.0
        return self.meet(task)

    def reply(self, action: str) -> Turn:
        self._gained = 0.0
        match = _GUESS.fullmatch(action.strip())
        if match is not None:
            return self._guess(match[1])
        traits = self._table.traits_in(action)
        heard = self.user.hear(action)
        answer = answer_in(heard.utterance)
        if len(traits) == 1 and traits[0].name not in self._trait_names:
            self._trait_names.append(traits[0].name)
        if len(traits) == 1 and answer is not None:
            left = self._table.fitting(self._left, traits[0].name, answer)
            if left:  # a user that contradicts itself tells nothing
                self._gained = math.log2(len(self._left) / len(left))
                self._left = left
        if heard.done:
            return self.fail(heard.utterance or "The user has left.")
        return self.go_on(heard.utterance) if traits else self.invalid(heard.utterance)

    def _guess(self, name: str) -> Turn:
        by_name = {choice.lower(): choice for choice in self._choices}
        if name.lower() not in by_name:
            return self.invalid("That is not one of them.")
        if by_name[name.lower()] == self.task.params["secret"]:
            self._gained = math.log2(len(self._left))
            self._left = [self.task.params["secret"]]
            return self.succeed(f"Yes, it is {by_name[name.lower()]}.")
        return self.fail(f"No, it was {self.task.params['secret']}.")

    def admissible(self) -> list[str]:
        return [trait.question for trait in self._table.traits] + [f"guess {name}" for name in self._choices]

    def anchor(self) -> Hashable:
        return (self.task.id, tuple(self._left), tuple(sorted(self._trait_names)))

    def progress(self) -> float:
        return 1 - math.log(len(self._left)) / math.log(len(self._choices))

    def notes(self) -> Mapping[str, Any]:
        return {**super().notes(), "information": self._gained}

    def expert(self) -> str:
        """Asks what is expected to tell most; guesses when nothing more is to be learnt, or no turn is left."""
        question = self._table.best_question(self._left, self._trait_names)
        if question is None or self.turn + 1 >= self.max_turns:
            return f"guess {self._left[0]}"
        return question.question

    def answer(self) -> str:
        return f"guess {self.task.params['secret']}"

    def state(self) -> Any:
        return [self._left, self._trait_names]

    def set_state(self, state: Any) -> None:
        self._left, self._trait_names = state


class TwentyQuestions(Guessing):
    """Find out which everyday thing the user thinks of.

    Task:
        A thing, one of several that the user names first.
    Observation:
        The user's answers: yes, no, or that it does not know. ``progress`` is the share of the information that they
        gave, and ``info["information"]`` what the last turn gave, in bits. An answer that is neither yes nor no gives
        none.
    Actions:
        A question that can be answered with yes or no, such as ``Is it alive?``, or ``guess NAME``.
    Reward:
        1 for the right guess. ``turns`` adds the part ``information``, the change of ``progress``.
    End:
        A guess ends the episode; so does a user who leaves.
    Splits:
        train, validation and test. The things of a split occur in no other, neither as the secret nor as a choice.
    Expert:
        Asks the question that is expected to say most. It guesses when nothing more can be learnt, or no turn is left.
    Floors:
        On 400 test tasks each the expert succeeds in all and silence in none. Random admissible actions succeed in 10,
        6 and 3 % (easy, medium, hard), a guess without a question in 12.5, 6 and 4 %.

    Args:
        split: train, validation or test.
        difficulty: easy (one of 8 things, 8 turns), medium (16, 10) or hard (24, 12).
        user, rewards: see ``TalkEnv``.
        max_turns: overrides the level's limit.
    """

    instructions = (
        "The user is thinking of one of several things. Ask yes-or-no questions, one at a time, such as: Is it "
        "alive? When you know the answer, say: guess NAME. You have one guess."
    )
    levels = {"easy": GuessingLevel(8, 8), "medium": GuessingLevel(16, 10), "hard": GuessingLevel(24, 12)}

    def table_of(self, task: Task) -> Table:
        return THINGS

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"
        count, names = self.level.choices, _things_of(split)

        def make(number: int) -> Task:
            draws = Draws("twenty questions", prefix, number)
            while True:
                drawn = _sample(draws, names, count)
                if THINGS.told_apart(drawn):
                    params = {"choices": sorted(drawn), "secret": drawn[0]}
                    return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)


class GuessCity(Guessing):
    """Find out which of several made-up cities the user thinks of, with what the atlas says of them.

    Task:
        A city, one of several. Cities and their traits are drawn for each task, so only reading and reasoning help.
    Observation:
        The atlas, then the user's answers: yes, no, or that it does not know. ``progress`` is the share of the
        information that they gave, and ``info["information"]`` what the last turn gave, in bits.
    Actions:
        A question that can be answered with yes or no, such as ``Is it on the coast?``, or ``guess NAME``.
    Reward:
        1 for the right guess. ``turns`` adds the part ``information``, the change of ``progress``.
    End:
        A guess ends the episode; so does a user who leaves.
    Splits:
        train, validation and test share no atlas.
    Expert:
        Asks the question that is expected to say most. It guesses when nothing more can be learnt, or no turn is left.
    Floors:
        On 400 test tasks each the expert succeeds in all and silence in none. Random admissible actions succeed in 19,
        14 and 9 % (easy, medium, hard), a guess without a question in 25, 12.5 and 8 %.

    Args:
        split: train, validation or test.
        difficulty: easy (one of 4 cities, 5 turns), medium (8, 7) or hard (12, 8).
        user, rewards: see ``TalkEnv``.
        max_turns: overrides the level's limit.
    """

    instructions = (
        "The user is thinking of one of several cities. The atlas describes them; a trait that it does not list "
        "is unknown. Ask yes-or-no questions, one at a time, such as: Is it on the coast? When you know the "
        "answer, say: guess NAME. You have one guess."
    )
    levels = {"easy": GuessingLevel(4, 5), "medium": GuessingLevel(8, 7), "hard": GuessingLevel(12, 8)}

    def table_of(self, task: Task) -> Table:
        return _atlas(task.params["cities"], len(task.params["choices"]))

    def opening(self, task: Task) -> str:
        rows = self.table_of(task).rows
        return "\n".join(["I am thinking of one of these cities.", *(in_words(name, rows[name]) for name in rows)])

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.difficulty}/"
        count = self.level.choices

        def make(number: int) -> Task:
            attempt = 0
            while split_of(digest(prefix, number, attempt)) != split:
                attempt += 1
            key = digest("cities", prefix, number, attempt)
            names = list(_atlas(key, count).rows)
            params = {"cities": key, "choices": names, "secret": Draws("secret", key).pick(names)}
            return Task(f"{prefix}{number}", split, params, self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)


@lru_cache(maxsize=256)
def _atlas(key: str, count: int) -> Table:
    return draw_cities(Draws("atlas", key), count)


@lru_cache
def _things_of(split: str) -> tuple[str, ...]:
    shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
    return tuple(name for name in sorted(THINGS.rows) if split_of(digest("thing", name), shares) == split)


def _sample(draws: Draws, items: Sequence[str], count: int) -> list[str]:
    left = list(items)
    return [left.pop(draws.below(len(left))) for _ in range(count)]
